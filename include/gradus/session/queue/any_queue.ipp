// The bodies of any_queue.hpp.
#pragma once
#include "../../base/body.hpp"
#include "any_queue.hpp"

namespace gradus::inline GRADUS_BUILD {

namespace detail {

class array_reader final : public element_reader {
public:
  array_reader(const element_layout& layout, std::span<const tensor_view> to, bool quick) : layout_(layout), to_(to) {
    is_quick = quick;
  }
  void read(const element_chain& from) override { layout_.read(*from.front(), to_, -1); }

private:
  const element_layout& layout_;
  std::span<const tensor_view> to_;
};

// Reads one element, whose extents the datum takes, or several elements as rows.
class datum_reader final : public element_reader {
public:
  datum_reader(const element_layout& layout, const components& parts, datum& to, bool rows)
      : layout_(layout), parts_(parts), to_(to), rows_(rows) {}
  void read(const element_chain& from) override {
    if (!rows_) {
      to_.clear();
      for (std::size_t k = 0; k < parts_.size(); ++k)
        to_.add(parts_[k].name, parts_[k].type, from.front()->parts[k].dims);
      layout_.read(*from.front(), to_.views(), -1);
    } else if (layout_.is_fixed()) {
      to_.conform(parts_, from.size());
      const auto views = to_.views();
      std::int64_t row = 0;
      for (const queue_element* e = from.front(); e != nullptr; e = e->next) layout_.read(*e, views, row++);
    } else {
      layout_.read_padded(from, parts_, to_);
    }
  }

private:
  const element_layout& layout_;
  const components& parts_;
  datum& to_;
  bool rows_;
};

// The views of an element's components. They are on the stack unless there are more than eight.
class view_list {
public:
  explicit view_list(std::size_t n) : size_(n) {
    if (n > here_.size()) more_.resize(n);
  }
  const_tensor_view& operator[](std::size_t k) { return data()[k]; }
  operator std::span<const const_tensor_view>() { return {data(), size_}; }

private:
  const_tensor_view* data() { return more_.empty() ? here_.data() : more_.data(); }
  std::size_t size_;
  std::array<const_tensor_view, 8> here_;
  std::vector<const_tensor_view> more_;
};

}  // namespace detail

GRADUS_BODY any_queue::any_queue(const queue_spec& spec, const task_system& run)
    : spec_(std::make_shared<const queue_spec>(spec)),
      parts_(spec.parts()),
      core_(std::make_shared<detail::queue_core>(spec, run)) {}

GRADUS_BODY any_queue::any_queue(const queue_spec& spec, const any_queue& existing)
    : spec_(std::make_shared<const queue_spec>(spec)), parts_(spec.parts()), core_(existing.core_) {
  spec.check();
  check_same_queue(core_->spec(), spec);
}

GRADUS_BODY any_queue any_queue::from_list(std::int64_t index, std::span<const any_queue> queues) {
  if (queues.empty()) raise(status::invalid_argument, "from_list: expected at least one queue, found none");
  for (const any_queue& q : queues)
    if (q.dtypes() != queues[0].dtypes() || q.names() != queues[0].names())
      raise(status::invalid_argument,
            text("from_list: queues \"", queues[0].name(), "\" and \"", q.name(),
                 "\" differ in the types or names of their components; list queues of the same elements"));
  if (index < 0 || index >= static_cast<std::int64_t>(queues.size()))
    raise(status::out_of_range, text("from_list: expected an index from 0 to ", queues.size() - 1, ", got ", index));
  return queues[static_cast<std::size_t>(index)];
}

GRADUS_BODY void any_queue::enqueue(std::span<const const_tensor_view> element, const blocking_options& wait) {
  put(element, false, false, wait);
}
GRADUS_BODY void any_queue::enqueue(std::initializer_list<named_value> element, const blocking_options& wait) {
  put(element, false, wait);
}
GRADUS_BODY void any_queue::enqueue(const datum& element, const blocking_options& wait) { put(element, false, wait); }
GRADUS_BODY void any_queue::enqueue_many(std::span<const const_tensor_view> rows, const blocking_options& wait) {
  put(rows, false, true, wait);
}
GRADUS_BODY void any_queue::enqueue_many(std::initializer_list<named_value> rows, const blocking_options& wait) {
  put(rows, true, wait);
}
GRADUS_BODY void any_queue::enqueue_many(const datum& rows, const blocking_options& wait) { put(rows, true, wait); }

GRADUS_BODY void any_queue::put(std::span<const const_tensor_view> list, bool named, bool many,
                                const blocking_options& wait) {
  if (!named && !names().empty())
    refuse(text("its components have names; give a dictionary or a datum with them, such as {{\"", names()[0],
                "\", array}}"));
  core_->enqueue(list, many, wait);
}

GRADUS_BODY void any_queue::put(std::initializer_list<named_value> dictionary, bool many,
                                const blocking_options& wait) {
  if (names().empty()) refuse("it has no names, so it takes no dictionary; give it names, or a list of arrays");
  if (dictionary.size() != names().size())
    refuse(text("expected a dictionary of ", names().size(), " names, got ", dictionary.size()));
  detail::view_list list(names().size());
  for (const named_value& v : dictionary) {
    const_tensor_view& place = list[position_of(v.name)];
    if (place.type != dtype::none) refuse(text("the dictionary has \"", v.name, "\" twice"));
    place = v.value;
  }
  put(list, true, many, wait);
}

GRADUS_BODY void any_queue::put(const datum& element, bool many, const blocking_options& wait) {
  detail::view_list list(element.size());
  const bool named = !names().empty();
  if (named && element.size() != names().size())
    refuse(text("expected a datum of ", names().size(), " components, got ", element.size()));
  for (std::size_t k = 0; k < element.size(); ++k) list[named ? position_of(element.about(k).name) : k] = element[k];
  put(list, named, many, wait);
}

GRADUS_BODY void any_queue::dequeue(std::span<const tensor_view> out, const blocking_options& wait) {
  const detail::element_layout& layout = core_->layout();
  const queue_spec& s = *spec_;
  if (!layout.is_fixed()) refuse("its elements have no fixed shapes; dequeue into a datum");
  bool fits = out.size() == s.dtypes.size();
  for (std::size_t k = 0; fits && k < out.size(); ++k) fits = out[k].type == s.dtypes[k] && out[k].dims == s.shapes[k];
  if (!fits) {
    std::string found;
    for (const tensor_view& v : out) found += text(found.empty() ? "" : ", ", name_of(v.type), " ", to_text(v.dims));
    refuse(text("expected arrays for ", to_text(parts_), ", got ", found));
  }
  detail::array_reader reader(layout, out, layout.fixed_bytes() <= detail::queue_core::small);
  core_->dequeue(1, false, reader, wait);
}

GRADUS_BODY void any_queue::dequeue(datum& out, const blocking_options& wait) {
  detail::datum_reader reader(core_->layout(), parts_, out, false);
  core_->dequeue(1, false, reader, wait);
}

GRADUS_BODY datum any_queue::dequeue(const blocking_options& wait) {
  datum out;
  dequeue(out, wait);
  return out;
}

GRADUS_BODY void any_queue::dequeue_many(std::int64_t n, datum& out, const blocking_options& wait) {
  take(n, false, out, wait);
}

GRADUS_BODY datum any_queue::dequeue_many(std::int64_t n, const blocking_options& wait) {
  datum out;
  dequeue_many(n, out, wait);
  return out;
}

GRADUS_BODY void any_queue::dequeue_up_to(std::int64_t n, datum& out, const blocking_options& wait) {
  take(n, true, out, wait);
}

GRADUS_BODY datum any_queue::dequeue_up_to(std::int64_t n, const blocking_options& wait) {
  datum out;
  dequeue_up_to(n, out, wait);
  return out;
}

GRADUS_BODY void any_queue::take(std::int64_t n, bool up_to, datum& out, const blocking_options& wait) {
  const std::string_view what = up_to ? "dequeue_up_to" : "dequeue_many";
  if (!spec_->has_shapes())
    refuse(text(what,
                " makes one array of several elements, so it needs specified shapes; make the queue with shapes, "
                "or dequeue one element at a time"));
  if (n < 0) refuse(text(what, ": expected a number of elements from 0 on, got ", n));
  if (spec_->kind == queue_kind::priority && spec_->capacity >= 0 && n > spec_->capacity)
    refuse(text(what, "(", n, ") waits until as many elements are there, and its capacity is ", spec_->capacity,
                "; take fewer, or give it more room"));
  if (n == 0) return out.conform(parts_, 0);
  detail::datum_reader reader(core_->layout(), parts_, out, true);
  core_->dequeue(n, up_to, reader, wait);
}

GRADUS_BODY void any_queue::close(bool cancel_pending_enqueues, const blocking_options& wait) {
  core_->close(cancel_pending_enqueues, wait);
}

GRADUS_BODY std::size_t any_queue::position_of(std::string_view name) const {
  for (std::size_t k = 0; k < names().size(); ++k)
    if (names()[k] == name) return k;
  refuse(text("it has no component \"", name, "\"; its names are ",
              detail::in_brackets(names(), [](const std::string& s) { return std::string_view(s); })));
}

GRADUS_BODY void any_queue::refuse(const std::string& why) const {
  raise(status::invalid_argument, text("queue \"", name(), "\": ", why));
}

}  // namespace gradus
