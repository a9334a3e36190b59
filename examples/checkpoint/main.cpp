// gradus-checkpoint: looks into checkpoints of every codec, compares, converts and checks them.
//
// docs/checkpoint_tool.md is its page. Exit codes: 0 done; 1 the answer is no: they differ, or something is damaged;
// 2 it could not be done: usage, a file that is not there or is no checkpoint, a standard output that takes nothing.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.hpp"
#include "limits.hpp"
#include "output.hpp"

namespace {
int run(int argc, char** argv) {
  tool::settings s;
  std::string path, other, only, names, output, limits;
  std::vector<std::string> paths, dropped;
  std::size_t values = 0;
  tool::tolerance allowed;
  tool::destination to;

  CLI::App app{
      "Looks into checkpoints of every codec, compares, converts and checks them.\n"
      "Exit codes: 0 done; 1 they differ, or something is damaged; 2 it could not be done."};
  app.name("gradus-checkpoint");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", s.json, "print JSON, for programs");
  app.add_option("--names", names,
                 "names of a TensorFlow optimizer's state: tensorflow:Adam[,called=NAME][,scope=NAME]"
                 "[,global_step=NAME][,beta1=X][,beta2=X]");
  app.add_option("--limits", limits, tool::limits_help);
  const auto writes = [&](CLI::App* command) {
    command->add_option("--to", to.codec, "the codec to write; otherwise the extension of TO says it")
        ->check(CLI::IsMember(tool::codec_names()));
    command->add_option("--shards", to.shards, "write so many files side by side")->check(CLI::Range(1, 99999));
    command->add_option("--sector-bytes", to.sector_bytes, "of a flash image: the bytes of a sector (4096)");
    command->add_option("--sectors", to.sectors, "of a flash image: how many the store has (as few as will do)");
    command->add_flag("--force", to.overwrite, "overwrite what is there");
  };

  auto* list = app.add_subcommand("list", "the checkpoints of a directory");
  list->add_option("DIR", path, "a directory")->required();
  auto* show = app.add_subcommand("show", "names, types, shapes and statistics of a checkpoint's tensors");
  show->add_option("PATH", path, "a checkpoint, or a directory: its newest one")->required();
  show->add_option("--values", values, "also the first N values of each tensor");
  show->add_option("--only", only, "only tensors whose name holds this");
  auto* diff = app.add_subcommand("diff", "how two checkpoints differ; exit code 1 if they do");
  diff->add_option("A", path, "a checkpoint or directory")->required();
  diff->add_option("B", other, "another")->required();
  diff->add_option("--atol", allowed.absolute, "let numbers differ by so much")->check(CLI::NonNegativeNumber);
  diff->add_option("--rtol", allowed.relative, "and by so much of B's")->check(CLI::NonNegativeNumber);
  auto* verify = app.add_subcommand("verify", "check every checksum; exit code 1 if something is damaged");
  verify->add_option("PATH", paths, "checkpoints, or directories: everything in them")->required();
  auto* convert = app.add_subcommand("convert", "write a checkpoint with another codec");
  convert->add_option("FROM", path, "a checkpoint, or a directory: its newest one")->required();
  convert->add_option("TO", to.path, "the file to write, with or without extension, or a directory")->required();
  convert->add_option("--drop", dropped,
                      "leave out tensors and metadata of this name, or that fit a pattern with * and ?");
  writes(convert);
  auto* compact = app.add_subcommand("compact", "a base and its deltas as one whole checkpoint");
  compact->add_option("CHAIN", paths, "the base and its deltas, in the order of saving")->required();
  compact->add_option("--output,-o", output, "the file to write")->required();
  writes(compact);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    if (!limits.empty()) tool::limits = tool::limits_of(limits);
    if (!names.empty()) s.names = tool::names_of(names);
    if (*list) return tool::list(s, path);
    if (*show) return tool::show(s, path, values, only);
    if (*diff) return tool::diff(s, path, other, allowed);
    if (*verify) return tool::verify(s, paths);
    if (*convert) return tool::convert(s, path, to, dropped);
    to.path = output;
    return tool::compact(s, paths, to);
  } catch (const gradus::error& e) {
    std::fprintf(stderr, "gradus-checkpoint: %s\n", tool::visible(e.what()).c_str());
    return e.kind() == gradus::status::data_loss ? 1 : 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gradus-checkpoint: %s\n", tool::visible(e.what()).c_str());
    return 2;
  }
}
}  // namespace

int main(int argc, char** argv) { return tool::finished("gradus-checkpoint", run(argc, argv)); }
