// What a hook wrote for TensorBoard, read back.
#pragma once
#include <gradus/summary/reader.hpp>
#include <gradus/summary/writer.hpp>
#include <gradus/testing/faulty_files.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct event_log {
  gradus::testing::faulty_files files;
  std::shared_ptr<gradus::detail::any_summary_writer> writer =
      std::make_shared<gradus::summary_writer<gradus::testing::faulty_files>>("events",
                                                                              gradus::summary_writer_options{}, files);
  // The steps and values of a tag, in the order of the file.
  std::vector<std::pair<std::int64_t, float>> of(const std::string& tag) {
    writer->flush();
    std::vector<std::pair<std::int64_t, float>> found;
    each([&](const gradus::event& e) {
      for (const auto& v : e.values)
        if (v.tag == tag) found.emplace_back(e.step, v.simple_value);
    });
    return found;
  }
  template <class See>
  void each(See see) {
    std::vector<std::string> names;
    files.list("events", names);
    for (const auto& name : names) {
      gradus::summary_iterator all(gradus::join_path("events", name), files);
      for (const auto& e : all) see(e);
    }
  }
};
