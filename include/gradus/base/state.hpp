// The state list names everything that changes between steps: variables, slots, averages, the step, random streams,
// input positions. Save, restore, reset and the listing of a checkpoint are derived from it.
//
// An object with state lists it:
//
//   void remembers(gradus::state_list& list) { list.scalar("global_step", step_); list.tensor("w", ...); }
//
// Entries point to live memory: saving reads through them, and restoring writes through them. State whose size is not
// fixed (a shuffle buffer) is a `blob`.
#pragma once
#include "build.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype.hpp"
#include "error.hpp"
#include "shape.hpp"

namespace gradus::inline GRADUS_BUILD {

class state_list;

// What a restore does with the saved position of an input.
enum class saved_input : std::uint8_t {
  required,    // the input goes on there; a position in another input is an error
  if_it_fits,  // the input goes on there; another input is read from its beginning, with a warning
  ignored      // every input is read from its beginning
};

// State of variable length. `load` gets the bytes of an earlier `save`, already checked against their checksum. It must
// still refuse bytes that it cannot use (status::data_loss), and then leave the object unchanged.
class blob {
public:
  virtual void save(std::vector<std::byte>& out) const = 0;
  virtual void load(std::span<const std::byte> in) = 0;
  // A restore calls this in place of `load` if the entry has `may_lack` and the file lacks the blob; the tensors of the
  // list get their values. It must change nothing that `load` of an earlier save would not undo.
  virtual void load_lacking(const state_list&) {}
  // Returns true for an input's position. If `load` refuses a position, a restore passes over it if the file is of step
  // 0, so that no step has read the input, or if no step is to be made; in other cases saved_input decides.
  virtual bool may_start_anew() const { return false; }

protected:
  ~blob() = default;
};

struct state_entry {
  std::string name;  // unique in its list, with '/' between scopes
  dtype type = dtype::none;
  extents dims;
  std::span<std::byte> bytes;  // empty for a blob
  blob* dynamic = nullptr;
  // True for a blob that the files of another program do not have (TensorFlow's have no list of a session's variables
  // that have no value), and for a tensor that a file without such a blob may lack. A tensor that is lacking stays as
  // it is.
  bool may_lack = false;
};

// Code that changes state calls the guard before it changes each piece, for a save that copies state while training
// goes on (checkpoint/staging.hpp). Any thread may call it.
class write_guard {
public:
  // On a system without threads nothing runs beside training, so no guard is called, and the code for it is left out.
#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32)
  static constexpr bool possible = true;
#else
  static constexpr bool possible = false;
#endif
  // The most bytes that a piece should have: longer changes are announced, and made, in pieces of this size.
  static constexpr std::size_t piece = std::size_t{1} << 20;

  // Returns whether a save is copying state.
  virtual bool active() const = 0;
  virtual void before_write(std::span<const std::byte> bytes) = 0;

protected:
  ~write_guard() = default;
};

// Entries of a list may be copies of values that are elsewhere (cluster/remote_session.hpp). Before their memory is
// read by a save, or written by a restore, this makes it equal to those values; what is written then becomes the
// values.
class state_mirror {
public:
  virtual void refresh() = 0;

protected:
  ~state_mirror() = default;
};

class state_list {
public:
  void tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> bytes,
              bool may_lack = false);
  template <computable T>
  void tensor(std::string_view name, const extents& dims, std::span<T> values) {
    tensor(name, dtype_of<T>, dims, std::as_writable_bytes(values));
  }
  template <computable T>
  void scalar(std::string_view name, T& value) {
    tensor(name, {}, std::span<T>(&value, 1));
  }
  void dynamic(std::string_view name, blob& state, bool may_lack = false);

  // Lists what some entries are copies of. It must outlive the list's use, as their memory.
  void mirrored_by(state_mirror& m);
  void mirrored_as(const state_list& other) {
    for (state_mirror* m : other.mirrors_) mirrored_by(*m);
  }
  // Savers call this before they read or write the entries' memory.
  void refresh() const {
    for (state_mirror* m : mirrors_) m->refresh();
  }

  const std::vector<state_entry>& entries() const { return entries_; }
  const state_entry* find(std::string_view name) const {
    for (const auto& e : entries_)
      if (e.name == name) return &e;
    return nullptr;
  }

private:
  void insert(state_entry entry);

  std::vector<state_entry> entries_;
  std::vector<state_mirror*> mirrors_;
};

}  // namespace gradus

#ifndef GRADUS_COMPILED
#include "state.ipp"
#endif
