// These ops of a session's graph read variables or give them their first values, as TensorFlow's initializer ops do.
//
//   auto init = gradus::global_variables_initializer(g);
//   auto missing = gradus::report_uninitialized_variables(g);
//   g.finalize();
//   gradus::session s{g};
//   s.run(init);                                            // as s.initialize(), and again where there is a value
//   gradus::uninitialized_names(g, missing, s.run(missing));  // {}
//
// First values are drawn from the seed that the op was made with, else from that of the session's last initialize (0
// before it); the random streams of a graph begin anew only with a seed of the op's own. An initializer runs before
// everything else of its run, on variables that no other run uses meanwhile.
#pragma once
#include "../base/build.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base_session.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {
void run_initialize(session_call& c);
void run_is_initialized(session_call& c);
void run_report(session_call& c);
void run_count_up_to(session_call& c);
void reads_listed(std::span<const int> attributes, std::vector<int>& reads, std::vector<int>& writes);
void infer_truth(inference& r);
void infer_report(inference& r);
void infer_count(inference& r);
}  // namespace detail

namespace cards {
inline constexpr unsigned own_traits = trait::keeps | trait::blocks | trait::session | trait::at_session;
inline constexpr session_card initialize_variables{
    {"InitializeVariables", 0, own_traits}, &detail::run_initialize, run_phase::before, nullptr, true},
    is_variable_initialized{{"IsVariableInitialized", 0, own_traits, &detail::infer_truth},
                            &detail::run_is_initialized,
                            run_phase::during,
                            &detail::reads_listed},
    report_uninitialized{{"ReportUninitializedVariables", 0, own_traits, &detail::infer_report},
                         &detail::run_report,
                         run_phase::during,
                         &detail::reads_listed},
    count_up_to{{"CountUpTo", 1, own_traits | trait::writes, &detail::infer_count}, &detail::run_count_up_to};
}  // namespace cards

// Returns an op that gives these variables their first values; for an empty list it does nothing. Raises
// invalid_argument for a value that is no variable.
value variables_initializer(graph& g, std::span<const value> variables, std::optional<std::uint64_t> seed = {});
// This is v.initializer in TensorFlow.
value initializer_of(value variable, std::optional<std::uint64_t> seed = {});
// Return such an op for the variables that the graph has now: all except local ones, or the local ones.
value global_variables_initializer(graph& g, std::optional<std::uint64_t> seed = {});
value local_variables_initializer(graph& g, std::optional<std::uint64_t> seed = {});
// Returns an op that runs the initializers in collection::table_initializers.
value tables_initializer(graph& g);
namespace collection {
inline constexpr std::string_view table_initializers = "table_initializer";
}

// Returns a boolean scalar: whether the variable has a value.
value is_variable_initialized(value variable);
// Returns a boolean [number of variables], true for each that has no value; of all variables of the graph, or of these.
// uninitialized_names returns their names. TensorFlow's op returns a vector of strings instead.
value report_uninitialized_variables(graph& g);
value report_uninitialized_variables(graph& g, std::span<const value> variables);
// Returns the names of the variables that have no value according to such a report of `g`. Raises invalid_argument if
// `report` is not one.
std::vector<std::string> uninitialized_names(const graph& g, value report, const const_tensor_view& result);

// Counts an integer variable up by one and returns its value before. When it runs at the limit, raises out_of_range,
// and the variable stays. As tf.count_up_to.
value count_up_to(value variable, std::int64_t limit);

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "variable_ops.ipp"
#endif
