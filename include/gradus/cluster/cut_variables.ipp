// The bodies of cut_variables.hpp.
#pragma once
#include <numeric>
#include <set>

#include "../base/body.hpp"
#include "cut_variables.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::vector<store_variable> cut_variables(std::vector<store_variable> variables,
                                                      const variable_partitioner& cut, std::size_t block) {
  if (!cut) return variables;
  std::vector<store_variable> out;
  for (store_variable& v : variables) {
    const cut_along wanted = v.dims.rank == 0 ? cut_along{} : cut(v.name, v.type, v.dims);
    const auto rows = static_cast<std::int64_t>(v.row_count());
    if (wanted.parts != 1 && wanted.axis != 0)
      raise(status::invalid_argument,
            text("the partitioner cuts \"", v.name, "\" ", to_text(v.dims), " along axis ", wanted.axis,
                 "; a cluster cuts variables along axis 0, so that a part is one piece of memory"));
    if (wanted.parts < 1 || (wanted.parts > 1 && wanted.parts > rows))
      raise(status::invalid_argument, text("the partitioner makes ", wanted.parts, " parts of \"", v.name, "\" ",
                                           to_text(v.dims), "; expected 1 to ", std::max<std::int64_t>(rows, 1)));
    std::vector<std::int64_t> begins{0};
    if (v.width() != 0) {
      const auto unit = static_cast<std::int64_t>(v.takes_rows ? 1 : block / std::gcd(block, v.width()));
      for (std::int64_t i = 1, at = 0; i < wanted.parts; ++i) {
        at += rows / wanted.parts + (i <= rows % wanted.parts);
        const std::int64_t moved = (at + unit / 2) / unit * unit;
        if (moved > begins.back() && moved < rows) begins.push_back(moved);
      }
    }
    if (begins.size() == 1) {
      out.push_back(std::move(v));
      continue;
    }
    begins.push_back(rows);
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      store_variable& part = out.emplace_back(v);
      part.name = text(v.name, "/part_", i);
      part.dims.dims[0] = begins[i + 1] - begins[i];
      part.whole = v.name, part.whole_dims = v.dims, part.first_row = begins[i];
    }
  }
  std::set<std::string_view> whole;
  for (const store_variable& v : out)
    if (!v.is_part()) whole.insert(v.name);
  for (const store_variable& v : out)
    if (v.is_part() && whole.contains(v.name))
      raise(status::invalid_argument,
            text("the partitioner cuts \"", v.whole, "\" ", to_text(v.whole_dims), ", and the model has a variable \"",
                 v.name,
                 "\", as one of its parts would be named; rename that variable, or give a partitioner that "
                 "returns 1 part for \"",
                 v.whole, '"'));
  return out;
}

GRADUS_BODY std::vector<std::pair<std::string, std::string>> chosen_cuts(std::span<const store_variable> variables) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const store_variable& v : variables) {
    if (!v.is_part()) continue;
    if (v.first_row == 0)
      out.emplace_back(text("the parts of \"", v.whole, '"'), "from rows 0");
    else
      out.back().second += text(", ", v.first_row);
  }
  return out;
}

GRADUS_BODY void refuse_cut(const store_variable& part, std::string_view why) {
  raise(status::invalid_argument,
        text("the partitioner cuts \"", part.whole, "\" ", to_text(part.whole_dims), ", and ", why,
             "; a cluster cuts no such variable. Give a partitioner that returns 1 part for it"));
}

}  // namespace gradus::detail
