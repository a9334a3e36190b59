// The bodies of scaffold.hpp.
#pragma once
#include "../base/body.hpp"
#include "scaffold.hpp"

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY scaffold::scaffold(const scaffold& copy_from, scaffold_options o) : o_(std::move(o)) {
  const auto take = [](auto& mine, const auto& other) {
    if (!mine) mine = other;
  };
  take(o_.init_op, copy_from.o_.init_op), take(o_.init_fn, copy_from.o_.init_fn);
  take(o_.ready_op, copy_from.o_.ready_op), take(o_.saver, copy_from.o_.saver);
  take(o_.ready_for_local_init_op, copy_from.o_.ready_for_local_init_op);
  take(o_.local_init_op, copy_from.o_.local_init_op);
  if (o_.init_feed_dict.empty()) o_.init_feed_dict = copy_from.o_.init_feed_dict;
}

GRADUS_BODY value scaffold::get_or_default(graph& g, std::string_view collection, const std::function<value()>& make) {
  value found;
  int many = 0;
  g.for_each_in(collection, [&](value v) { found = v, ++many; });
  if (many > 1)
    raise(status::failed_precondition, text("More than one item in the collection \"", collection,
                                            "\". Please indicate which one to use by passing it to the scaffold"));
  if (many == 1) return found;
  const value made = make();
  g.add_to(collection, made);
  return made;
}

GRADUS_BODY scaffold& scaffold::finalize(graph& g) {
  if (finalized_) return *this;
  const auto fill = [&](value& op, std::string_view collection, const std::function<value()>& make) {
    if (!op) op = get_or_default(g, collection, make);
  };
  fill(o_.init_op, collection::init_op, [&] { return global_variables_initializer(g); });
  fill(o_.ready_op, collection::ready_op, [&] { return report_uninitialized_variables(g); });
  fill(o_.ready_for_local_init_op, collection::ready_for_local_init_op, [&] {
    std::vector<value> global;
    g.for_each_in(collection::global_variables, [&](value v) { global.push_back(v); });
    return report_uninitialized_variables(g, global);
  });
  fill(o_.local_init_op, collection::local_init_op, [&] {
    const value locals = local_variables_initializer(g), tables = tables_initializer(g);
    return g.group({locals, tables});
  });
  if (o_.saver == nullptr) o_.saver = std::make_shared<gradus::saver<>>();
  g.finalize();
  finalized_ = true;
  return *this;
}

GRADUS_BODY std::function<void(base_session&)> scaffold::init_fn() {
  if (!o_.init_fn) return nullptr;
  return [this](base_session& s) { o_.init_fn(*this, s); };
}

}  // namespace gradus
