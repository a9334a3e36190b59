// The bodies of federated_server.hpp.
#pragma once
#include "../base/body.hpp"
#include "../base/error.hpp"
#include "federated_server.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

GRADUS_BODY void federated_rounds::collecting::tensor(std::string_view name, dtype type, const extents& dims,
                                                      std::span<std::byte> values) {
  if (type == float64 || is_16_bit_float(type))
    raise(status::invalid_argument, "federated_server: variable \"", name, "\" is ", name_of(type),
          "; rounds exchange float32, and a mean without it would be half a model; make it float32");
  if (type == float32) all.push_back({std::string(name), dims, values});
}

GRADUS_BODY federated_rounds::federated_rounds(std::vector<variable> variables, const federated_options& options,
                                               std::int64_t* writes)
    : options_(options), variables_(std::move(variables)), writes_(writes) {
  if (options_.members < 1 || options_.members >= federated_frame::server)
    raise(status::invalid_argument, "federated_options: members is ", options_.members, "; give 1 to 65534");
  if (options_.least_members < 1 || options_.least_members > options_.members)
    raise(status::invalid_argument, "federated_options: least_members is ", options_.least_members, "; give 1 to ",
          options_.members, ", the number of members");
  if (options_.most_examples < 1 || options_.most_examples > federated_frame::most_examples)
    raise(status::invalid_argument, "federated_options: most_examples is ", options_.most_examples, "; give 1 to ",
          federated_frame::most_examples);
  for (const variable& v : variables_) size_.tensor(v.name, float32, v.dims, v.values);
  if (size_.bytes > 0x7fffffff)
    raise(status::invalid_argument, "federated_server: the model has ", size_.bytes,
          " bytes of variables; a frame holds less than 2 GiB");
  if (size_.bytes == 0)
    raise(status::invalid_argument,
          "federated_server: the model has no variable of float32, so there is nothing to average");
  members_.resize(static_cast<std::size_t>(options_.members));
  for (member_line& m : members_) m.room.resize(size_.bytes);
  frame_.resize(federated_frame::head_bytes + size_.bytes);
}

GRADUS_BODY const federated_rounds::member_line& federated_rounds::at(int member) const {
  if (member < 0 || member >= options_.members)
    raise(status::invalid_argument, "federated_server: there is no member ", member, "; they are 0 to ",
          options_.members - 1);
  return members_[static_cast<std::size_t>(member)];
}

GRADUS_BODY std::span<const std::byte> federated_rounds::begin_round() {
  if (runs_)
    raise(status::failed_precondition, "federated_server: round ", round_, " still runs; end_round comes first");
  if (round_ < 0 || round_ >= 0xffffffff)
    raise(status::failed_precondition, "federated_server: no round comes after number ", round_,
          "; restore what remembers wrote, or begin another run");
  std::byte* to = frame_.data() + federated_frame::head_bytes;
  for (const variable& v : variables_) {
    copy_floats(to, v.values.data(), v.values.size());
    to += v.values.size();
  }
  const std::span<const std::byte> numbers = std::span(frame_).subspan(federated_frame::head_bytes);
  if (!all_finite(numbers))
    raise(status::failed_precondition,
          "federated_server: the model has numbers that are infinite or NaN, which members refuse; initialize the "
          "trainer's variables, or restore a checkpoint");
  runs_ = true, ++round_;
  for (member_line& m : members_) m.taken = false;
  federated_frame f;
  f.run = options_.run, f.round = round(), f.fingerprint = size_.fingerprint,
  f.bytes = static_cast<std::uint32_t>(size_.bytes);
  f.crc = f.model_crc = model_crc_ = crc32c_by_nibble(0, numbers.data(), numbers.size());
  f.write(frame_.data());
  return frame_;
}

GRADUS_BODY std::span<const std::byte> federated_rounds::frame() const {
  if (!runs_) raise(status::failed_precondition, "federated_server: no round runs; begin_round comes first");
  return frame_;
}

GRADUS_BODY federated_answer federated_rounds::judge(const federated_frame& f, int member) const {
  if (f.version_of > f.version) return federated_answer::newer_version;
  if (f.version_of != f.version || f.kind_of != f.update || f.run != options_.run || f.member != member)
    return federated_answer::foreign;
  if (f.fingerprint != size_.fingerprint || f.bytes != size_.bytes) return federated_answer::another_model;
  if (f.round > round()) return federated_answer::early;
  if (f.round < round() || !runs_ || f.model_crc != model_crc_) return federated_answer::late;
  if (at(member).taken) return federated_answer::repeated;
  if (f.examples == 0 || f.examples > options_.most_examples) return federated_answer::bad_examples;
  return federated_answer::taken;
}

GRADUS_BODY void federated_rounds::receive(int member, std::span<const std::byte> bytes) {
  using event = federated_receiver::event;
  member_line& m = const_cast<member_line&>(at(member));
  // After `taken` the room holds the update: the head of every frame that could overwrite it is refused.
  for (event e; (e = m.receiver.next(bytes, m.room)) != event::nothing;) {
    federated_answer answer = federated_answer::damaged;
    if (e == event::head) answer = judge(m.receiver.head(), member);
    if (e == event::payload)  // checked again at its end, since its round may have ended
      answer = all_finite(m.room) ? judge(m.receiver.frame(), member) : federated_answer::bad_numbers;
    if (answer == federated_answer::taken && e == event::head) {
      if (!m.receiver.accept()) continue;
      answer = federated_answer::damaged;  // the frame before it, which was cut
    }
    if (answer == federated_answer::taken) m.taken = true, m.examples = m.receiver.frame().examples;
    m.counts.add(answer);
  }
  m.counts.skipped_bytes = m.receiver.skipped_bytes();
}

GRADUS_BODY void federated_rounds::reconnected(int member) {
  member_line& m = const_cast<member_line&>(at(member));
  if (m.receiver.restart()) m.counts.add(federated_answer::damaged);
}

GRADUS_BODY std::int64_t& federated_rounds::round_number() {
  if (runs_)
    raise(status::failed_precondition, "federated_server: round ", round_,
          " runs; save and restore between two rounds");
  return round_;
}

GRADUS_BODY bool federated_rounds::is_complete() const {
  for (const member_line& m : members_)
    if (!m.taken) return false;
  return runs_;
}

GRADUS_BODY federated_report federated_rounds::end_round() {
  if (!runs_) raise(status::failed_precondition, "federated_server: no round runs; begin_round comes first");
  runs_ = false;
  federated_report r{.round = round()};
  for (const member_line& m : members_)
    if (m.taken) ++r.members, r.examples += m.examples;
  if (r.members < options_.least_members) return r;
  r.averaged = true;
  if (writes_ != nullptr) ++*writes_;
  std::size_t from = 0;
  for (const variable& v : variables_) {
    for (std::size_t i = 0; i < v.values.size(); i += sizeof(float), from += sizeof(float)) {
      double sum = -0.0;  // so that zeros keep their sign; each product is exact, so a fused one is the same
      for (const member_line& m : members_) {
        if (!m.taken) continue;
        float w;
        copy_floats(reinterpret_cast<std::byte*>(&w), m.room.data() + from, sizeof w);
        sum += static_cast<double>(m.examples) * static_cast<double>(w);
      }
      const auto mean = static_cast<float>(sum / static_cast<double>(r.examples));
      std::memcpy(v.values.data() + i, &mean, sizeof mean);
    }
  }
  return r;
}

}  // namespace gradus::detail
