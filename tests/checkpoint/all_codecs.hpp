// Every codec, and every way to save in the background, behind one face: sweeps are compiled once and run over all.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradus/checkpoint/background.hpp"
#include "gradus/checkpoint/in_place.hpp"
#include "gradus/codec/all_codecs.hpp"
#include "gradus/codec/sharded.hpp"
#include "saving.hpp"

namespace saving {

// A saver of any codec. Copies are the same saver.
class any_saver {
public:
  template <class Saver>
  explicit any_saver(Saver s) : held_(std::make_shared<of<Saver>>(std::move(s))) {}

  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
             std::optional<double> metric = {}) {
    return held_->save(list, prefix, step, std::move(about), metric);
  }
  saved save(snapshot content, std::string_view prefix, std::optional<double> metric = {}) {
    return held_->save(std::move(content), prefix, metric);
  }
  restored restore(const state_list& list, const std::string& path, const restore_options& options = {}) const {
    return held_->restore(list, path, options);
  }
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) const {
    return held_->restore_latest(list, directory, options);
  }

private:
  struct face {
    virtual ~face() = default;
    virtual saved save(const state_list&, std::string_view, std::int64_t, metadata, std::optional<double>) = 0;
    virtual saved save(snapshot, std::string_view, std::optional<double>) = 0;
    virtual restored restore(const state_list&, const std::string&, const restore_options&) = 0;
    virtual std::optional<restored> restore_latest(const state_list&, const std::string&, const restore_options&) = 0;
  };
  template <class Saver>
  struct of final : face {
    explicit of(Saver s) : saver(std::move(s)) {}
    saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about,
               std::optional<double> metric) override {
      return saver.save(list, prefix, step, std::move(about), metric);
    }
    saved save(snapshot content, std::string_view prefix, std::optional<double> metric) override {
      return saver.save(std::move(content), prefix, metric);
    }
    restored restore(const state_list& list, const std::string& path, const restore_options& options) override {
      return saver.restore(list, path, options);
    }
    std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                           const restore_options& options) override {
      return saver.restore_latest(list, directory, options);
    }
    Saver saver;
  };
  std::shared_ptr<face> held_;
};

// A codec, and how a saver of it is made on the file system F.
template <file_system F>
struct codec_case {
  std::string name;
  std::string extension;
  std::function<any_saver(const F&, const saver_options&)> make;
};
template <file_system F, codec C>
codec_case<F> case_of(const C& c, std::string name = std::string(C::name)) {
  return {std::move(name), std::string(C::extension), [c](const F& fs, const saver_options& options) {
            return any_saver(saver<C, F, hand_clock>(options, c, fs));
          }};
}
// Those of the list as they are by default, and what else is written by them.
template <file_system F>
const std::vector<codec_case<F>>& codec_cases() {
  static const std::vector<codec_case<F>> all = [] {
    std::vector<codec_case<F>> cases;
    all_codecs::for_each([&]<class C>(std::type_identity<C>) { cases.push_back(case_of<F>(C{})); });
    cases.push_back(case_of<F>(tensor_bundle{.shards = 3}, "tensor_bundle, 3 shards"));
    cases.push_back(case_of<F>(sharded<flat_binary>{.shards = 2}, "sharded flat_binary"));
    cases.push_back(case_of<F>(sharded<safetensors>{.shards = 3}, "sharded safetensors"));
    return cases;
  }();
  return all;
}

// How a save goes: in place, or in the background by one of the snapshots.
class any_saves {
public:
  virtual ~any_saves() = default;
  virtual bool save(const state_list& list, std::string_view prefix, std::int64_t step) = 0;
  virtual void before_step() = 0;
  virtual std::optional<save_done> next_done() = 0;
  virtual void finish() = 0;
};
struct way_to_save {
  std::string_view name;
  std::unique_ptr<any_saves> (*make)(any_saver);
};
template <class Snapshot>
std::unique_ptr<any_saves> saves_by(any_saver s) {
  struct of final : any_saves {
    explicit of(any_saver with) : saves(std::move(with)) {}
    bool save(const state_list& list, std::string_view prefix, std::int64_t step) override {
      return saves.save(list, prefix, step);
    }
    void before_step() override { saves.before_step(); }
    std::optional<save_done> next_done() override { return saves.next_done(); }
    void finish() override { saves.finish(); }
    typename Snapshot::template saves<any_saver> saves;
  };
  return std::make_unique<of>(std::move(s));
}
inline constexpr way_to_save all_ways[] = {{"in place", &saves_by<in_place>},
                                           {"copy", &saves_by<copy_snapshot>},
                                           {"rolling", &saves_by<rolling_snapshot>},
                                           {"fork", &saves_by<fork_snapshot>}};

}  // namespace saving
