// A flash_store keeps a checkpoint in raw NOR flash, for programs without a heap, exceptions or files: the state of a
// static_stepper, saved so that a power cut at any instant leaves the last confirmed save or a newer one.
//
//   struct chip {  // the part of the flash that the store may use
//     static constexpr std::uint32_t sector_bytes = 4096, sectors = 8;
//     // Sets all bits of a sector to 1.
//     bool erase(std::uint32_t sector);
//     // Sets bits to 0. The offset is a multiple of 32.
//     bool program(std::uint32_t offset, std::span<const std::byte, 32> line);
//     // Reads from any place, any length, not past the end.
//     bool read(std::uint32_t offset, std::span<std::byte> to);
//   };
//   static gradus::flash_store flash{chip{}};
//
//   if (flash.open(trainer) != gradus::flash_status::ok)  // ok: the trainer goes on from the newest whole step
//     trainer.initialize(42);                             // empty, damaged, ...: each has its text
//   ...
//   flash.save(trainer);  // ok: confirmed, read back from the flash
//
// The sectors form a ring. A save erases as many sectors as it needs behind the newest record, then programs a mark,
// then the state, and last of all the header with their checksums. The newest record stays untouched, so the ring needs
// 2 * sectors_of(bytes) sectors. The numbers of erasures of any two sectors differ by at most one. A line of 32 bytes
// is programmed at most once between two erasures, and always whole, so the store works with a granularity of 1, 2, 4,
// 8, 16 or 32 bytes, with error correction or without. A driver's function returns false on failure. A record in which
// a read fails (a torn word under error correction) counts as damaged.
//
// Nothing here raises: each function returns a flash_status. `check_flash` raises the error of a status, and
// `message_of` returns its text. docs/formats/flash.md has the bytes; codec/flash_image.hpp reads and writes images on
// a desktop.
#pragma once
#include "../base/build.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "../base/error.hpp"
#include "flash_format.hpp"

namespace gradus::inline GRADUS_BUILD {

enum class flash_status : std::uint8_t {
  ok,
  empty,          // no save was finished here
  damaged,        // records of this library, none of them whole
  foreign,        // the sectors hold something that this library did not write
  another_model,  // the newest record is whole, but of other names, types, shapes or frozen weights
  newer_version,  // the newest record is whole, but of a later format
  too_small,      // two records of this state do not fit
  not_opened,     // save before open
  not_written,    // the flash does not hold the programmed bytes
  not_read        // a read failed after the record had been found whole
};

constexpr const char* message_of(flash_status s) {
  constexpr const char* messages[] = {
      "the flash store is whole",
      "the flash store is empty: no save was finished in it; initialize the variables",
      "the flash store is damaged: it has records of this library, and none of them is whole; initialize the "
      "variables, and the next save begins anew",
      "the flash store is foreign: its sectors hold what this library did not write; check where it begins, or call "
      "format() to erase it",
      "the flash store holds the state of another model: names, types, shapes or frozen weights differ; load the "
      "program that wrote "
      "it, or call format() to erase it",
      "the flash store was written in a newer format than 1, which this program reads; load a newer program, or call "
      "format() to erase it",
      "the flash store is too small: it needs room for two records, so that one stays whole while the other is "
      "written; "
      "give it more sectors",
      "the flash store was not opened; call open() before save(), so that no record is overwritten unread",
      "the flash store could not be written: a sector does not hold what was programmed; the save before it is "
      "untouched, "
      "so save again",
      "the flash store could not be read: a read failed after the record was found whole, and a part of the state may "
      "have changed; open again, which also allows the next save"};
  return messages[static_cast<int>(s)];
}
constexpr status kind_of(flash_status s) {
  switch (s) {
  case flash_status::empty: return status::not_found;
  case flash_status::damaged: return status::data_loss;
  case flash_status::too_small: return status::resource_exhausted;
  case flash_status::not_written:
  case flash_status::not_read: return status::unavailable;
  default: return status::failed_precondition;
  }
}
// Raises an error for a status other than ok.
inline void check_flash(flash_status s) {
  if (s != flash_status::ok) raise(kind_of(s), message_of(s));
}

template <class D>
concept flash_driver = requires(D& d, std::uint32_t at, std::span<const std::byte, 32> line, std::span<std::byte> to) {
  { d.sector_bytes } -> std::convertible_to<std::uint32_t>;
  { d.sectors } -> std::convertible_to<std::uint32_t>;
  { d.erase(at) } -> std::same_as<bool>;
  { d.program(at, line) } -> std::same_as<bool>;
  { d.read(at, to) } -> std::same_as<bool>;
};

// A ring of records over the sectors of a driver, which the store keeps. Call `open` first. A store must not be used by
// several threads at a time.
template <flash_driver Driver>
class flash_store {
  using format_of = detail::flash_format;
  // Checks a geometry that is constant.
  template <class D>
  static consteval bool fits() {
    if constexpr (!std::is_member_pointer_v<decltype(&D::sector_bytes)>)
      return D::sector_bytes % format_of::line == 0 && D::sector_bytes > format_of::line;
    return true;
  }
  static_assert(fits<Driver>(), "gradus: a flash sector is a multiple of 32 bytes, and at least 64.");

public:
  explicit constexpr flash_store(Driver driver) : driver_(driver) {}
  flash_store(const flash_store&) = delete;
  flash_store& operator=(const flash_store&) = delete;

  // Takes over the newest whole record and marks the trainer as restored. Returns ok; or empty, damaged, foreign,
  // another_model, newer_version or too_small, with the trainer unchanged; or not_read. A whole record that does not
  // fit does not count as damaged: no older record is taken in its place.
  template <class Trainer>
  flash_status open(Trainer& trainer) {
    walk w{*this};
    over(trainer, w, reading::measure);
    found newest;
    state_ = look(w, newest);
    // The newest record is known by now, also to format.
    if (too_large(w)) state_ = flash_status::too_small;
    if (state_ != flash_status::ok) return state_;
    w.start = newest.sector;
    over(trainer, w, reading::check);
    if (w.missing) return state_ = flash_status::another_model;
    over(trainer, w, reading::restore);
    if (w.failed) return state_ = flash_status::not_read;
    if constexpr (requires { trainer.restored(); }) trainer.restored();
    return state_;
  }

  // Writes the trainer's present state. Returns ok if it was read back whole; a power cut from then on leaves this
  // record or a newer one. With any other status the records before are kept: too_small, not_opened, not_written, or
  // the status of open where the user has to decide (foreign, another_model, newer_version) or has to open again
  // (not_read).
  template <class Trainer>
  flash_status save(Trainer& trainer) {
    if (state_ > flash_status::damaged) return state_;
    walk w{*this};
    over(trainer, w, reading::measure);
    if (too_large(w)) return flash_status::too_small;
    const std::uint32_t count = format_of::sectors_of(w.bytes, driver_.sector_bytes);
    w.start = next_;
    if (begin(w, count)) {
      over(trainer, w, reading::write);
      if (finish(w)) {
        newest_ = w.start, next_ = ring(w.start + count), state_ = flash_status::ok;
        return flash_status::ok;
      }
    }
    // The next save tries another place, if there is one: a sector may be worn out.
    const std::uint32_t away = ring(next_ + driver_.sectors - newest_);
    next_ = ring(away + 1 + count <= driver_.sectors ? next_ + 1 : newest_ + count);
    return flash_status::not_written;
  }

  // Erases all sectors, whatever they hold, the newest record last. The next save begins anew. After not_written some
  // sector still holds what it held; the next save counts on from the records' numbers, so that it is newer than they.
  flash_status format() {
    if (state_ == flash_status::not_opened) {
      walk w{*this};
      found newest;
      look(w, newest);
    }
    bool done = true;
    for (std::uint32_t i = 0; i < driver_.sectors; ++i)
      done = driver_.erase(ring(newest_ + driver_.sectors - 1 - i)) && done;
    state_ = flash_status::empty;
    if (!done) return flash_status::not_written;
    newest_ = next_ = sequence_ = 0;
    return flash_status::ok;
  }

  // Returns the number of the newest record, which counts the saves that were tried since the first one. 0: there is
  // none.
  std::uint32_t sequence() const { return sequence_; }
  Driver& driver() { return driver_; }

private:
  enum class reading : std::uint8_t { measure, write, check, restore };
  // One walk over the state, as an argument of `remembers`: it is one type for all tasks, so that the state's own code
  // is compiled once.
  struct walk {
    flash_store& store;
    reading what = reading::measure;
    bool failed = false, missing = false;
    std::uint32_t start = 0;                              // sector
    std::uint32_t bytes = 0, fingerprint = 0, count = 0;  // measured
    std::uint32_t at = 0, crc = 0;                        // written
    std::byte line[format_of::line] = {};

    [[gnu::noinline]] void tensor(std::string_view name, dtype type, const extents& dims, std::span<std::byte> values) {
      const format_of::identity is(name, type, dims);
      const auto size = static_cast<std::uint32_t>(values.size());
      if (what == reading::measure) {
        fingerprint += is.id, ++count;
        bytes += static_cast<std::uint32_t>(sizeof(format_of::entry) + name.size()) + is.extent_bytes + size;
      } else if (what == reading::write) {
        const format_of::entry e{format_of::little(is.id), format_of::little(size),
                                 format_of::little(static_cast<std::uint16_t>(name.size())),
                                 static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(dims.rank)};
        put(&e, sizeof e), put(name.data(), name.size()), put(is.words + 1, is.extent_bytes);
        put(values.data(), values.size(), size_of(type));
      } else {
        std::uint32_t left = bytes;  // of the payload: its lengths are not trusted, although its checksum was right
        for (format_of::entry e{}; left >= sizeof e;) {
          if (!store.get(start, format_of::payload_at + (bytes - left), &e, sizeof e)) {
            failed = true;
            return;
          }
          const std::uint32_t head =
              static_cast<std::uint32_t>(sizeof e) + format_of::little(e.name_bytes) + 4u * e.rank;
          const std::uint32_t content = format_of::little(e.bytes);
          if (head > left || content > left - head) break;
          left -= head;
          if (format_of::little(e.id) == is.id && content == size) {
            if (what == reading::check) return;
            if (size != 0)
              failed = failed || !store.get(start, format_of::payload_at + (bytes - left), values.data(), size);
            turn(values, size_of(type));
            return;
          }
          left -= content;
        }
        missing = true;
      }
    }
    template <class T>
    void scalar(std::string_view name, T& value) {
      tensor(name, dtype_of<T>, {}, std::as_writable_bytes(std::span<T>(&value, 1)));
    }

    // Appends bytes; numbers of `width` bytes are written from their lowest byte on.
    void put(const void* from, std::size_t n, [[maybe_unused]] std::size_t width = 1) {
      const auto* p = static_cast<const std::byte*>(from);
      for (std::size_t i = 0; i < n; ++i) {
        if constexpr (std::endian::native == std::endian::big)
          line[at % format_of::line] = p[i / width * width + (width - 1 - i % width)];
        else
          line[at % format_of::line] = p[i];
        if (++at % format_of::line == 0) flush();
      }
    }
    void flush() {
      crc = detail::crc32c_by_nibble(crc, line, sizeof line);
      if (!store.set(start, format_of::payload_at + (at - 1) / format_of::line * format_of::line, line)) failed = true;
    }
    static void turn([[maybe_unused]] std::span<std::byte> values, [[maybe_unused]] std::size_t width) {
      if constexpr (std::endian::native == std::endian::big)
        for (std::size_t i = 0; i < values.size(); i += width)
          for (std::size_t k = 0; k < width / 2; ++k) std::swap(values[i + k], values[i + width - 1 - k]);
    }
  };
  struct found {
    std::uint32_t sector = 0;
    std::uint32_t words[format_of::words] = {};
    std::uint32_t operator[](int k) const { return format_of::little(words[k]); }
  };

  Driver driver_;
  std::uint32_t newest_ = 0, next_ = 0;  // the first sectors of the newest record and of the next one
  std::uint32_t sequence_ = 0;
  flash_status state_ = flash_status::not_opened;

  template <class Trainer>
  [[gnu::noinline]] static void over(Trainer& trainer, walk& w, reading what) {
    w.what = what;
    trainer.remembers(w);
  }

  // ---- bytes of a record, whose sectors may go on at the ring's beginning
  std::uint32_t ring(std::uint32_t sector) const { return sector % driver_.sectors; }
  bool too_large(const walk& w) const {
    return 2 * format_of::sectors_of(w.bytes, driver_.sector_bytes) > driver_.sectors;
  }
  [[gnu::noinline]] bool get(std::uint32_t start, std::uint32_t at, void* to, std::uint32_t n) {
    auto* p = static_cast<std::byte*>(to);
    const std::uint32_t end = driver_.sectors * driver_.sector_bytes;
    std::uint32_t from = start * driver_.sector_bytes + at;
    if (from >= end) from -= end;
    const std::uint32_t first = std::min(n, end - from);
    return driver_.read(from, {p, first}) && (first == n || driver_.read(0, {p + first, n - first}));
  }
  bool set(std::uint32_t start, std::uint32_t at, const std::byte* line) {
    const std::uint32_t end = driver_.sectors * driver_.sector_bytes;
    const std::uint32_t to = start * driver_.sector_bytes + at;
    return driver_.program(to >= end ? to - end : to, std::span<const std::byte, 32>(line, 32));
  }

  // ---- saving
  [[gnu::noinline]] bool begin(walk& w, std::uint32_t count) {
    // Erases from the last sector on: if the mark went first, the sectors behind it would look foreign.
    for (std::uint32_t i = count; i-- != 0;)
      if (!driver_.erase(ring(w.start + i))) return false;
    std::memset(w.line, 0xFF, sizeof w.line);
    const std::uint32_t mark[] = {format_of::little(format_of::mark[0]), format_of::little(format_of::mark[1])};
    std::memcpy(w.line, mark, sizeof mark);
    return set(w.start, 0, w.line);
  }
  [[gnu::noinline]] bool finish(walk& w) {
    if (w.at % format_of::line != 0) {
      std::memset(w.line + w.at % format_of::line, 0xFF, format_of::line - w.at % format_of::line);
      w.flush();
    }
    found made;
    made.sector = w.start;
    const std::uint32_t words[format_of::words] = {
        format_of::version, ++sequence_, w.fingerprint, w.bytes, w.crc, w.count, driver_.sector_bytes};
    for (int k = 0; k < format_of::words; ++k) made.words[k] = format_of::little(words[k]);
    std::memcpy(w.line, made.words, sizeof w.line);
    made.words[format_of::header_crc] = format_of::little(detail::crc32c_by_nibble(0, w.line, 28));
    std::memcpy(w.line, made.words, sizeof w.line);
    if (w.failed || !set(w.start, format_of::header_at, w.line)) return false;
    found held;
    held.sector = w.start;
    return read_header(held) == mark_seen::header && std::memcmp(held.words, made.words, sizeof held.words) == 0 &&
           whole(held, w.line);
  }

  // ---- looking
  enum class mark_seen : std::uint8_t { none, other, begun, broken, header };
  // Reads the beginning of a sector and returns what it holds: none, which may also be a mark that was cut while it was
  // programmed or erased (many chips program a sector to 0 before they erase it); other, something else; begun, a mark
  // alone; broken, a mark and no whole header; header.
  [[gnu::noinline]] mark_seen read_header(found& f) {
    std::uint32_t mark[2] = {};
    if (!get(f.sector, 0, mark, sizeof mark) || !get(f.sector, format_of::header_at, f.words, sizeof f.words))
      return mark_seen::broken;
    bool whole_mark = true, torn_mark = true, blank = true;
    for (std::uint32_t word : f.words) blank = blank && word == ~0u;
    const auto crc = detail::crc32c_by_nibble(0, reinterpret_cast<const std::byte*>(f.words), 28);
    const bool is_header = crc == f[format_of::header_crc];
    // An erasure that clears its sector first leaves this word, some of its bits, none, or ones.
    const std::uint32_t size = f[format_of::sector_bytes];
    const bool fell_behind = size == ~0u || (size & ~driver_.sector_bytes) == 0;
    for (int k = 0; k < 2; ++k) {
      const std::uint32_t m = format_of::little(mark[k]);
      whole_mark = whole_mark && m == format_of::mark[k];
      torn_mark = torn_mark && ((m == 0 && fell_behind) || (m & format_of::mark[k]) == format_of::mark[k]);
    }
    if (!whole_mark) return torn_mark ? mark_seen::none : mark_seen::other;
    if (blank) return mark_seen::begun;
    return is_header ? mark_seen::header : mark_seen::broken;
  }
  // Checks the state behind a header against its checksum.
  [[gnu::noinline]] bool whole(const found& f, std::byte* line) {
    const std::uint32_t room = driver_.sectors * driver_.sector_bytes - format_of::payload_at;
    const std::uint32_t n = f[format_of::bytes];
    if (n > room) return false;
    std::uint32_t crc = 0;
    for (std::uint32_t at = 0; at < n; at += format_of::line) {
      if (!get(f.sector, format_of::payload_at + at, line, format_of::line)) return false;
      crc = detail::crc32c_by_nibble(crc, line, format_of::line);
    }
    return crc == f[format_of::payload_crc];
  }
  [[gnu::noinline]] flash_status look(walk& w, found& newest) {
    newest_ = next_ = sequence_ = 0;
    unsigned seen = 0;  // a bit for each mark_seen
    const auto was_seen = [&seen](mark_seen m) { return (seen >> static_cast<int>(m) & 1u) != 0; };
    for (std::uint32_t below = ~0u;;) {
      newest.words[format_of::sequence] = 0;
      for (std::uint32_t s = 0; s < driver_.sectors; ++s) {
        found f;
        f.sector = s;
        const mark_seen m = read_header(f);
        seen |= 1u << static_cast<int>(m);
        if (m == mark_seen::header && f[format_of::sequence] < below &&
            f[format_of::sequence] > newest[format_of::sequence])
          newest = f;
      }
      below = newest[format_of::sequence];
      if (below == 0) break;
      sequence_ = std::max(sequence_, below);
      if (!whole(newest, w.line)) {
        seen |= 1u << static_cast<int>(mark_seen::broken);
        continue;
      }
      newest_ = newest.sector;
      next_ = ring(newest.sector + format_of::sectors_of(newest[format_of::bytes], driver_.sector_bytes));
      if (newest[format_of::version_word] != format_of::version) return flash_status::newer_version;
      if (newest[format_of::fingerprint] != w.fingerprint || newest[format_of::bytes] != w.bytes)
        return flash_status::another_model;
      return flash_status::ok;
    }
    if (was_seen(mark_seen::broken)) return flash_status::damaged;
    return was_seen(mark_seen::other) && !was_seen(mark_seen::begun) ? flash_status::foreign : flash_status::empty;
  }
};

}  // namespace gradus
