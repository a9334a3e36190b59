// A delta_saver is for large tables of which a step changes few rows: it writes a whole checkpoint, the base, now and
// then, and deltas between the bases.
//
//   delta_saver s(saver{}, {.deltas_per_base = 20, .keep_chains = 2});
//   s.tracker().table("emb", rows);                        // and mark the rows of every sparse update (delta.hpp)
//   s.save(list, "runs/ads/model", step);                  // a base or a delta
//   s.restore_latest(list, "runs/ads");                    // the base and all deltas behind it
//
// A base is deleted together with its deltas once as many later bases as are to be kept are on the disk. The state file
// lists bases and deltas alike, the newest last.
#pragma once
#include "delta.hpp"
#include "saver.hpp"

namespace gradus::inline GRADUS_BUILD {

struct delta_options {
  int deltas_per_base = 20;  // after that many, the next save is a base again
  int keep_chains = 1;       // how many bases, each with its deltas, are kept
};

template <class Saver>
class delta_saver {
public:
  // The saver's own max_to_keep has no effect: this class decides by whole chains which files are kept.
  explicit delta_saver(Saver s, delta_options options = {}) : saver_(std::move(s)), options_(options) {
    if (options.deltas_per_base < 0 || options.keep_chains < 1)
      raise(status::invalid_argument,
            text("delta_options: deltas_per_base is ", options.deltas_per_base, " and keep_chains ",
                 options.keep_chains, "; give 0 or more, and 1 or more"));
    saver_.keep_all();
  }

  // Tracks the rows that were touched since the last save.
  row_tracker& tracker() { return tracker_; }
  const Saver& files() const { return saver_; }

  // Saves a delta, or a base if there is none yet in the directory of `prefix`, the chain is long enough, or `whole` is
  // true. Raises the errors of saver::save; the marks are kept then, so that the next save includes these rows too.
  saved save(const state_list& list, std::string_view prefix, std::int64_t step, metadata about = {},
             bool whole = false) {
    const auto marks = tracker_.take();
    // A step that is not behind the chain's last has to build on nothing of it.
    const bool again = chain_ && step <= chain_->last.step;
    return undo_unless_saved(marks, [&] {
      const bool base =
          whole || again || !continues_in(directory_of(prefix)) || chain_->deltas >= options_.deltas_per_base;
      return base ? save_base(list, prefix, step, std::move(about))
                  : save_delta(list, marks, prefix, step, std::move(about));
    });
  }

  // Restores the newest checkpoint that the state file names, together with the files that it builds on; returns
  // nothing if there is neither a state file nor a checkpoint. With `fallback`, a delta that is damaged, or was made
  // for another file than the one before it, is left out with all that follow it. Later saves continue the restored
  // chain, if a state file lists it. Raises the errors of restore_deltas, data_loss for files that are damaged or
  // missing, and failed_precondition as saver::restore_latest does; nothing is changed then.
  std::optional<restored> restore_latest(const state_list& list, const std::string& directory,
                                         const restore_options& options = {}) {
    auto state = read_state_file(saver_.files(), directory);
    const bool listed = state.has_value();
    if (!listed) {
      const auto names = saver_.unlisted(directory, options);
      if (names.empty()) return std::nullopt;
      state.emplace().all.assign(names.rbegin(), names.rend());
    }
    std::vector<damaged_checkpoint> damaged;
    for (auto name = state->all.rbegin(); name != state->all.rend(); ++name) {
      std::deque<opened> files;
      const auto path = join_path(directory, *name);
      auto problem = open_chain(directory, *name, options.threads, files);
      if (problem.empty()) problem = detail::wrong_step(*name, files.back().content());
      const bool goes_back = !listed || options.fallback;
      if (problem.empty()) {
        const named_snapshot base{files.front().name, &files.front().content()};
        std::vector<named_snapshot> deltas;
        for (std::size_t i = 1; i < files.size(); ++i) deltas.push_back({files[i].name, &files[i].content()});
        // A file may be whole, but not the one that the next was made for: then an older checkpoint is looked for, too.
        if (goes_back) problem = detail::chain_problem(base, deltas).second;
        if (!problem.empty()) {
          damaged.push_back({path, std::move(problem)});
          continue;
        }
        auto& newest = files.back().content();
        std::string warning;
        chain_ = restore_deltas(list, base, deltas, options, &warning);
        chain_directory_ = directory_of(path);
        tracker_.clear();
        return restored{path, newest.step, std::move(newest.about), std::move(damaged), std::move(warning)};
      }
      damaged.push_back({path, std::move(problem)});
      if (!goes_back) break;
    }
    raise(status::data_loss, text("checkpoint \"", damaged.front().path,
                                  "\" cannot be restored: ", damaged.front().reason, ". Nothing was changed."));
  }

private:
  struct opened {
    std::string name;
    decltype(std::declval<const Saver&>().read(std::string{})) file;
    snapshot& content() { return file.result().content; }
  };

  // Returns whether a delta saved in this directory would find what it builds on beside it. The directory may be
  // another one than that of the chain, or may have been removed and made again meanwhile.
  bool continues_in(const std::string& directory) {
    if (!chain_ || directory != chain_directory_) return false;
    saver_.own(directory);
    const auto listed = saver_.checkpoints();
    for (const auto& link : {chain_->base, chain_->last}) {
      if (std::find(listed.begin(), listed.end(), link.file) == listed.end()) return false;
      const any_codec& c = saver_.codec();
      const std::string path = join_path(directory, *detail::stem_of(link.file, c.extension) + std::string(c.proof));
      const int e = detail::uninterrupted([&] { return saver_.disk().exists(path); });
      if (e == ENOENT) return false;
      if (e != 0) raise({e, "look for", path});
    }
    return true;
  }

  template <class Save>
  saved undo_unless_saved(const row_tracker& marks, Save&& save) {
    struct undo {
      row_tracker* tracker;
      const row_tracker& marks;
      ~undo() {
        if (tracker != nullptr) tracker->put_back(marks);
      }
    } back{&tracker_, marks};
    auto out = save();
    back.tracker = nullptr;
    return out;
  }
  saved save_base(const state_list& list, std::string_view prefix, std::int64_t step, metadata about) {
    auto out = saver_.save(list, prefix, step, std::move(about));
    const std::string name(file_name_of(out.path));
    const auto file = saver_.read(out.path);
    if (!file.result().ok())
      raise(status::data_loss, text("\"", out.path, "\" was saved, but cannot be read again: ", file.result().problem));
    chain_ = begin_chain({name, &file.result().content});
    chain_directory_ = directory_of(prefix);
    return forget_old_chains(chain_directory_, std::move(out));
  }
  saved save_delta(const state_list& list, const row_tracker& marks, std::string_view prefix, std::int64_t step,
                   metadata about) {
    const auto delta = make_delta(list, marks, *chain_, step, std::move(about));
    auto out = saver_.save(delta.content, prefix);
    chain_ = extended(*chain_, {std::string(file_name_of(out.path)), &delta.content});
    return out;
  }

  // Returns the base that `name` goes back to, the deltas between, and itself; or a problem.
  std::string open_chain(const std::string& directory, std::string name, int threads, std::deque<opened>& files) const {
    for (;;) {
      files.push_front({name, saver_.read(join_path(directory, name), threads)});
      auto& front = files.front();
      if (!front.file.result().ok()) return text("\"", name, "\": ", front.file.result().problem);
      if (!is_delta(front.content())) return {};
      const std::string before(detail::said(front.content(), delta_keys::after));
      const auto again = std::any_of(files.begin(), files.end(), [&](const opened& f) { return f.name == before; });
      if (!detail::is_plain_name(before) || again)
        return text("\"", name, "\" says that it follows \"", before, "\", which cannot be");
      name = before;
    }
  }
  saved forget_old_chains(const std::string& directory, saved out) {
    // A chain begins where a file is no delta; the newest base is the last in the list.
    const auto names = saver_.checkpoints();
    std::vector<std::string> old;
    int bases = 0;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (bases >= options_.keep_chains) {
        old.push_back(*name);
        continue;
      }
      const auto file = *name == names.back() ? std::nullopt : std::optional(saver_.read(join_path(directory, *name)));
      if (!file || (file->result().ok() && !is_delta(file->result().content))) ++bases;
    }
    if (old.empty()) return out;
    const auto done = saver_.forget(directory, old);
    out.removed.insert(out.removed.end(), done.removed.begin(), done.removed.end());
    out.not_removed.insert(out.not_removed.end(), done.not_removed.begin(), done.not_removed.end());
    return out;
  }

  Saver saver_;
  delta_options options_;
  row_tracker tracker_;
  std::optional<delta_chain> chain_;
  std::string chain_directory_;  // in which the files of the chain are
};

}  // namespace gradus
