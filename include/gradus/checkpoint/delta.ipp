// The bodies of delta.hpp.
#pragma once
#include "../base/body.hpp"
#include "delta.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::string_view said(const snapshot& s, std::string_view key) {
  const auto at = s.about.find(std::string(key));
  return at == s.about.end() ? std::string_view{} : std::string_view(at->second);
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY std::uint32_t content_checksum(const snapshot& s) {
  std::vector<const record*> records;
  for (const auto& r : s.records) records.push_back(&r);
  std::sort(records.begin(), records.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  std::uint32_t crc = crc32c(text("step ", s.step, '\n'));
  for (const auto key : delta_keys::all)
    if (is_delta(s) && key != delta_keys::checksum) crc = extend(crc, text(key, ' ', detail::said(s, key), '\n'));
  for (const auto* r : records)
    crc = extend(crc, text(r->name, ' ', r->opaque ? detail::kind_of(*r) : text(name_of(r->type), to_text(r->dims)),
                           ' ', crc32c(r->bytes), '\n'));
  return crc;
}

GRADUS_BODY delta_chain begin_chain(const named_snapshot& base) {
  if (is_delta(*base.content))
    raise(status::failed_precondition,
          text("\"", base.file, "\" is a delta of \"", detail::said(*base.content, delta_keys::base),
               "\"; a chain begins with a whole checkpoint"));
  const checkpoint_link link{base.file, base.content->step, content_checksum(*base.content)};
  return {link, link, 0};
}

GRADUS_BODY delta_chain extended(const delta_chain& chain, const named_snapshot& delta) {
  return {chain.base, {delta.file, delta.content->step, content_checksum(*delta.content)}, chain.deltas + 1};
}

GRADUS_BODY owned_snapshot make_delta(const state_list& list, const row_tracker& marks, const delta_chain& chain,
                                      std::int64_t step, metadata about, bool copy) {
  list.refresh();
  owned_snapshot out{{step, std::move(about), {}}};
  auto& records = out.content.records;
  for (const auto& e : list.entries()) {
    if (e.name.ends_with(delta_keys::rows) || e.name.ends_with(delta_keys::values))
      raise(status::invalid_argument,
            text("the state \"", e.name, "\" cannot be in a delta, where names that end in \"", delta_keys::rows,
                 "\" and \"", delta_keys::values, "\" mean rows of tables"));
    if (e.dynamic != nullptr) {
      std::vector<std::byte> bytes;
      e.dynamic->save(bytes);
      const auto size = static_cast<std::int64_t>(bytes.size());
      records.push_back({e.name, uint8, {size}, out.own(std::move(bytes)), true});
      continue;
    }
    const touched_rows* touched = marks.find(e.name);
    if (touched != nullptr && (e.dims.rank == 0 || e.dims[0] != touched->rows()))
      raise(status::invalid_argument, text("the table \"", e.name, "\" is tracked with ", touched->rows(),
                                           " rows, but has the extents ", to_text(e.dims)));
    const auto rows = touched != nullptr ? touched->list() : std::vector<std::int64_t>{};
    const std::size_t row_bytes =
        touched != nullptr && e.dims[0] != 0 ? e.bytes.size() / static_cast<std::size_t>(e.dims[0]) : 0;
    if (touched == nullptr || rows.size() * (row_bytes + sizeof(std::int64_t)) > e.bytes.size()) {
      const std::span<const std::byte> live = e.bytes;
      records.push_back({e.name, e.type, e.dims, copy ? out.own({live.begin(), live.end()}) : live, false});
      continue;
    }
    if (rows.empty()) continue;
    std::vector<std::byte> indices(rows.size() * sizeof(std::int64_t)), values(rows.size() * row_bytes);
    std::memcpy(indices.data(), rows.data(), indices.size());
    for (std::size_t i = 0; i < rows.size() && row_bytes != 0; ++i)
      std::memcpy(values.data() + i * row_bytes, e.bytes.data() + static_cast<std::size_t>(rows[i]) * row_bytes,
                  row_bytes);
    extents dims = e.dims;
    dims.dims[0] = static_cast<std::int64_t>(rows.size());
    records.push_back({text(e.name, delta_keys::rows), int64, {dims[0]}, out.own(std::move(indices)), false});
    records.push_back({text(e.name, delta_keys::values), e.type, dims, out.own(std::move(values)), false});
  }
  const auto say = [&out](std::string_view key, auto value) {
    out.content.about.insert_or_assign(std::string(key), text(value));
  };
  say(delta_keys::number, chain.deltas + 1);
  say(delta_keys::base, chain.base.file), say(delta_keys::base_step, chain.base.step);
  say(delta_keys::base_checksum, chain.base.checksum);
  say(delta_keys::after, chain.last.file), say(delta_keys::after_step, chain.last.step);
  say(delta_keys::after_checksum, chain.last.checksum);
  say(delta_keys::checksum, content_checksum(out.content));
  return out;
}

}  // namespace gradus

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY std::int64_t row_at(const record& indices, std::size_t i) {
  std::int64_t row = 0;
  std::memcpy(&row, indices.bytes.data() + i * sizeof row, sizeof row);
  return row;
}

GRADUS_BODY std::string rows_problem(const record& table, const record& indices, const record& values) {
  extents dims = table.dims;
  const std::int64_t rows = dims.rank > 0 ? dims[0] : 0;
  if (dims.rank > 0) dims.dims[0] = indices.dims.rank == 1 ? indices.dims[0] : -1;
  if (table.blob || table.dims.rank == 0 || indices.type != int64 || indices.dims.rank != 1 || indices.blob ||
      values.blob || values.type != table.type || !(values.dims == dims))
    return text("has ", name_of(values.type), to_text(values.dims), " as values of ", name_of(indices.type),
                to_text(indices.dims), " rows of \"", table.name, "\", which is ", kind_of(table));
  std::int64_t before = -1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(indices.dims[0]); ++i) {
    const std::int64_t row = row_at(indices, i);
    if (row <= before || row >= rows)
      return text("has row ", row, " after row ", before, " in \"", indices.name, "\"; rows ascend, below ", rows);
    before = row;
  }
  return {};
}

GRADUS_BODY void put_rows(const merged_record& m, std::span<std::byte> table) {
  for (const auto& p : m.patches) {
    const auto n = static_cast<std::size_t>(p.indices->dims[0]);
    const std::size_t row_bytes = n != 0 ? p.values->bytes.size() / n : 0;
    for (std::size_t i = 0; i < n && row_bytes != 0; ++i)
      std::memcpy(table.data() + static_cast<std::size_t>(row_at(*p.indices, i)) * row_bytes,
                  p.values->bytes.data() + i * row_bytes, row_bytes);
  }
}

GRADUS_BODY std::pair<status, std::string> follow_problem(const delta_chain& chain, const named_snapshot& delta) {
  const snapshot& s = *delta.content;
  const auto refuse = [&](status kind, const auto&... why) {
    return std::pair(kind, text("the delta \"", delta.file, "\" cannot be applied: ", why...));
  };
  if (!is_delta(s)) return refuse(status::failed_precondition, "it is a whole checkpoint; restore it alone");
  if (said(s, delta_keys::checksum) != text(content_checksum(s)))
    return refuse(status::data_loss, "it is damaged: its content has not the checksum that it says; restore the ",
                  chain.deltas, " deltas before it");
  const auto number = said(s, delta_keys::number), step = said(s, delta_keys::after_step);
  if (said(s, delta_keys::base_step) != text(chain.base.step))
    return refuse(status::failed_precondition, "its base is \"", said(s, delta_keys::base), "\" of step ",
                  said(s, delta_keys::base_step), ", not \"", chain.base.file, "\" of step ", chain.base.step);
  if (number != text(chain.deltas + 1) || step != text(chain.last.step))
    return refuse(status::failed_precondition, "it is delta ", number, ", which follows \"", said(s, delta_keys::after),
                  "\" of step ", step, ", but comes here as delta ", chain.deltas + 1, " after \"", chain.last.file,
                  "\" of step ", chain.last.step, "; give all deltas, in the order in which they were saved");
  if (said(s, delta_keys::base_checksum) != text(chain.base.checksum))
    return refuse(status::data_loss, "its base \"", chain.base.file,
                  "\" is not the one it was made for, or is damaged");
  if (said(s, delta_keys::after_checksum) != text(chain.last.checksum))
    return refuse(status::data_loss, "\"", chain.last.file,
                  "\" before it is not the one it was made for, or is damaged");
  return {};
}

GRADUS_BODY std::pair<status, std::string> chain_problem(const named_snapshot& base,
                                                         std::span<const named_snapshot> deltas) {
  auto chain = begin_chain(base);
  for (const auto& d : deltas) {
    if (auto problem = follow_problem(chain, d); !problem.second.empty()) return problem;
    chain = extended(chain, d);
  }
  return {};
}

GRADUS_BODY merged_snapshot merge(const named_snapshot& base, std::span<const named_snapshot> deltas) {
  merged_snapshot out{begin_chain(base), {}};
  std::map<std::string_view, std::size_t> places;
  const auto put = [&](const record& r) {
    const auto [at, added] = places.emplace(r.name, out.records.size());
    if (added) out.records.emplace_back();
    out.records[at->second] = {&r, {}};
  };
  for (const auto& r : base.content->records) put(r);
  for (const auto& d : deltas) {
    if (const auto [kind, why] = follow_problem(out.chain, d); !why.empty())
      raise(kind, text(why, ". Nothing was changed."));
    std::map<std::string_view, const record*> parts;
    for (const auto& r : d.content->records) parts.emplace(r.name, &r);
    for (const auto& r : d.content->records) {
      const bool rows = r.name.ends_with(delta_keys::rows), values = r.name.ends_with(delta_keys::values);
      if (!rows && !values) {
        put(r);
        continue;
      }
      const auto& suffix = rows ? delta_keys::rows : delta_keys::values;
      const std::string table = r.name.substr(0, r.name.size() - suffix.size());
      const auto whole = places.find(table);
      const auto other = parts.find(table + std::string(rows ? delta_keys::values : delta_keys::rows));
      std::string problem;
      if (whole == places.end() || other == parts.end())
        problem =
            text("has \"", r.name, "\", but ", whole == places.end() ? "no table is before it" : "not its other half");
      else if (rows)
        problem = rows_problem(*out.records[whole->second].whole, r, *other->second);
      if (!problem.empty())
        raise(status::data_loss,
              text("the delta \"", d.file, "\" cannot be applied: it ", problem, ". Nothing was changed."));
      if (rows) out.records[whole->second].patches.push_back({&r, other->second});
    }
    out.chain = extended(out.chain, d);
  }
  return out;
}

GRADUS_BODY metadata about_of(const snapshot& newest) {
  metadata about = newest.about;
  for (const auto key : delta_keys::all)
    if (is_delta(newest)) about.erase(std::string(key));
  return about;
}

}  // namespace gradus::detail

namespace gradus::inline GRADUS_BUILD {

GRADUS_BODY delta_chain restore_deltas(const state_list& list, const named_snapshot& base,
                                       std::span<const named_snapshot> deltas, const restore_options& options,
                                       std::string* warning) {
  list.refresh();
  const auto merged = detail::merge(base, deltas);
  const named_snapshot& newest = deltas.empty() ? base : deltas.back();
  snapshot whole{newest.content->step, newest.content->about, {}};
  for (const auto& m : merged.records) whole.records.push_back(*m.whole);
  if (const auto mismatch = detail::compare(list, whole, options); !mismatch.problem.empty())
    raise(mismatch.kind, text("checkpoint \"", newest.file, "\" does not fit this model:", mismatch.problem,
                              "\nRestore it with the model, rule and policies that wrote it. Nothing was changed."));
  const std::string about = detail::copy_into(
      list, whole,
      {.threads = options.threads, .restore_input = options.restore_input, .input_until = options.input_until});
  if (warning != nullptr) *warning = about;
  for (const auto& m : merged.records)
    if (const auto* e = m.patches.empty() ? nullptr : list.find(m.whole->name)) detail::put_rows(m, e->bytes);
  return merged.chain;
}

GRADUS_BODY owned_snapshot compact(const named_snapshot& base, std::span<const named_snapshot> deltas) {
  const auto merged = detail::merge(base, deltas);
  const snapshot& newest = *(deltas.empty() ? base : deltas.back()).content;
  owned_snapshot out{{newest.step, detail::about_of(newest), {}}};
  for (const auto& m : merged.records) {
    record r = *m.whole;
    if (!m.patches.empty()) {
      std::vector<std::byte> table(r.bytes.begin(), r.bytes.end());
      detail::put_rows(m, table);
      r.bytes = out.own(std::move(table));
    }
    out.content.records.push_back(std::move(r));
  }
  return out;
}

}  // namespace gradus
