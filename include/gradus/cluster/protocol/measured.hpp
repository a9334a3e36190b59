// A shard sends the list that it has measured of the update under way, and sends it again until the decider has
// answered with the lists of all shards (settlement.hpp).
#pragma once
#include "../../base/build.hpp"

#include <algorithm>

#include "message.hpp"

namespace gradus::inline GRADUS_BUILD::detail {

class measured_list {
public:
  measured_list(std::uint32_t shard, nanos retry, protocol_outside& out) : shard_(shard), retry_(retry), out_(&out) {}

  // Returns the time at which it was first sent.
  nanos since() const { return since_; }
  // To be called when the Update (under_way.hpp) has measured.
  template <class Update>
  void begin(const Update& u, nanos now) {
    since_ = now;
    say(u, now);
  }
  template <class Update>
  void advance(const Update& u, nanos now) {
    if (u.is_open() && again_ <= now) say(u, now);
  }
  template <class Update>
  nanos next(const Update& u) const {
    return u.is_open() ? again_ : never_due;
  }

private:
  std::uint32_t shard_;
  nanos retry_, since_ = 0, again_ = 0;
  protocol_outside* out_;

  template <class Update>
  void say(const Update& u, nanos now) {
    again_ = now + retry_;
    const wire_slice list{"", dtype::float64, 0, std::as_bytes(u.measures()), slice_role::dense};
    out_->send({message_kind::measured, shard_, cluster_shape::decider, 0, u.round(), u.order(), {}, {&list, 1}});
  }
};

}  // namespace gradus::detail
