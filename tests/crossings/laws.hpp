// The laws of a drawn program: the file that includes this defines net, sizes and lists of policies.
#include <cstring>

namespace {
struct points {
  std::vector<float> x;
  std::vector<std::int32_t> y, ids;
  points() {
    random_stream r{11, 0};
    for (int i = 0; i < 60; ++i) {
      for (int k = 0; k < width; ++k) x.push_back(static_cast<float>(2 * r.uniform() - 1));
      y.push_back(static_cast<std::int32_t>(r.uniform() * 5));
      for (int k = 0; k < 2; ++k) ids.push_back(static_cast<std::int32_t>(r.uniform() * 9));
    }
  }
  auto all() const { return from_spans("x", x, extents{width}, "y", y, extents{}, "ids", ids, extents{2}); }
  auto batches() const { return all().shuffle(17, 5).repeat().batch(size); }
  auto in_order(int of) const { return all().repeat().batch(of); }
};
const points data;
// The batch of step i, where the data come in order.
struct batch_of_data {
  static constexpr std::size_t n = size;
  std::size_t from;
  std::span<const float> x;
  std::span<const std::int32_t> y, ids;
  explicit batch_of_data(int i)
      : from(static_cast<std::size_t>(i) % (60 / n) * n),
        x(std::span(data.x).subspan(from * width, n * width)),
        y(std::span(data.y).subspan(from, n)),
        ids(std::span(data.ids).subspan(from * 2, n * 2)) {}
};
const testing::temp_dir place;
constexpr auto model_of_the_program = [](graph& g) { return net(g); };

run_config config_of(const char* name) {
  return {.model_dir = place / name,
          .tf_random_seed = SEED,
          .save_summary_steps = 4,
          .save_checkpoints_steps = 4,
          .checkpoint_save_graph_def = false};
}
run_files::content left_in(const char* name, bool inputs = true) {
  auto found = run_files::newest_checkpoint(posix{}, place / name);
  if (!inputs) std::erase_if(found.records, [](const auto& r) { return r.first.starts_with("input "); });
  return found;
}

int failures = 0;
run_files::content decoded_elsewhere;  // the checkpoint of the law that runs, if it is of another format
run_files::content without_validation(run_files::content c) {
  std::erase_if(c.records, [](const auto& r) { return r.first.starts_with("validation"); });
  return c;
}
// Compares every record of a trainer with the state of another owner, by name.
template <class Find>
void compare(const char* name, const run_files::content& wanted, Find&& find) {
  std::string difference;
  for (const auto& [record, bytes] : wanted.records) {
    const std::string of = record.substr(0, record.find(' '));
    if (of == "input" || of.starts_with("random_")) continue;
    try {
      const const_tensor_view v = find(of);
      if (v.size_bytes() != bytes.size() || std::memcmp(v.data, bytes.data(), bytes.size()) != 0)
        difference += of + " differs; ";
    } catch (const std::exception& e) {
      difference += of + ": " + e.what() + "; ";
    }
  }
  if (difference.empty()) return;
  std::printf("%s: FAILED: %s\n", name, difference.c_str());
  ++failures;
}
run_files::content expected;
// Runs a law; what it raises is printed, and is a failure unless the law is one that may be refused.
template <class Law>
void check(const char* name, const run_files::content& wanted, bool inputs, bool may_be_refused, Law&& run) {
  try {
    run(name);
  } catch (const std::exception& e) {
    std::printf("%s: %s: %s\n", name, may_be_refused ? "refused" : "FAILED", e.what());
    failures += may_be_refused ? 0 : 1;
    return;
  }
  run_files::content other = wanted;  // after the run: it may be what the run makes
  if (!inputs) std::erase_if(other.records, [](const auto& r) { return r.first.starts_with("input "); });
  auto found = decoded_elsewhere.step >= 0 ? decoded_elsewhere : left_in(name, inputs);
  decoded_elsewhere.step = -1;
  if (std::string(name) == "validated") found = without_validation(found);
  const std::string difference = run_files::difference(found, other);
  if (difference.empty()) return;
  std::printf("%s: FAILED: %s\n", name, difference.c_str());
  ++failures;
}
template <class Trainer>
void train_to(Trainer&& t, int last) {
  auto input = data.batches();
  t.train(input, {.max_steps = last});
}

#if defined(LAW_cluster) || defined(LAW_simulated) || defined(LAW_again)
enum class door { trainer, estimator, supervisor };
constexpr door task_door = door::TASK_DOOR;
[[maybe_unused]] std::string logs_of(const char* name) { return place / (std::string(name) + "-logs"); }
void task(server& here, const char* name, int last) {
  if (here.is_ps()) return here.join();
  const auto input = [&] { return data.in_order(size / here.workers()).shard(here.workers(), here.worker()); };
  if (task_door == door::trainer) {
    make_trainer<net>(OF_A_TASK, CONNECTION, HOW, config_of(name)).train(input(), {.max_steps = last});
  } else if (task_door == door::estimator) {
    make_estimator<net>(OF_A_TASK, CONNECTION, HOW, config_of(name)).train(input, {.max_steps = last});
  } else {
    auto sv = make_supervisor<net>({.logdir = place / name, .is_chief = here.is_chief(), .tf_random_seed = SEED},
                                   OF_A_TASK, CONNECTION, HOW);
    auto sess = sv.managed_session(here.target(), input());
    while (!sv.should_stop() && sess.global_step() < last) sess.run();
  }
  here.finish();
}
#endif
}  // namespace

int main() {
  try {
    train_to(make_trainer<net>(POLICIES, config_of("whole")), steps);
  } catch (const std::exception& e) {
    std::printf("refused: %s\n", e.what());
    return 3;
  }
  expected = left_in("whole");
  if (expected.step != steps) {
    std::printf("FAILED: the run ended at step %d\n", static_cast<int>(expected.step));
    return 1;
  }
  bool moved = false;  // a run in which nothing moves shows nothing
  for (const auto& [name, bytes] : expected.records)
    for (const std::byte b : bytes) moved = moved || b != std::byte{};
  if (!moved) ++failures, std::printf("FAILED: nothing moved\n");

#ifdef LAW_resumed
  check("resumed", expected, true, false, [](const char* name) {
    train_to(make_trainer<net>(POLICIES, config_of(name)), stop);
    train_to(make_trainer<net>(POLICIES, config_of(name)), steps);
  });
#endif
#ifdef LAW_reordered
  check("reordered", expected, true, false,
        [](const char* name) { train_to(make_trainer<net>(config_of(name), REORDERED), steps); });
#endif
#ifdef LAW_calls
  check("calls", expected, true, false, [](const char* name) {
    auto t = make_trainer<net>(POLICIES, config_of(name));
    auto input = data.batches();
    t.train(input, {.steps = stop});
    t.train(input, {.max_steps = steps});
  });
#endif
#ifdef LAW_interpreted
  check("interpreted", expected, true, false,
        [](const char* name) { train_to(make_trainer(model_of_the_program, POLICIES, config_of(name)), steps); });
#endif
#ifdef LAW_threads
  check("threads", expected, true, false,
        [](const char* name) { train_to(make_trainer<net>(POLICIES, threads{2}, config_of(name)), steps); });
#endif
#ifdef LAW_gates
  check("gates", expected, true, false,
        [](const char* name) { train_to(make_trainer<net>(POLICIES, GATE, config_of(name)), steps); });
#endif
#ifdef LAW_snapshot
  check("snapshot", expected, true, false,
        [](const char* name) { train_to(make_trainer<net>(POLICIES, SNAPSHOT, config_of(name)), steps); });
#endif
#ifdef LAW_supervisor
  check("supervisor", expected, true, false, [](const char* name) {
    auto sv = make_supervisor<net>({.logdir = place / name, .tf_random_seed = SEED}, POLICIES);
    auto input = data.batches();
    auto sess = sv.managed_session("", input);
    for (int i = 0; i < steps; ++i) sess.run();
  });
#endif
#ifdef LAW_estimator
  check("estimator", expected, true, false, [](const char* name) {
    auto e = make_estimator<net>(POLICIES, config_of(name));
    e.train([] { return data.batches(); }, {.max_steps = steps});
  });
#endif
#ifdef LAW_evaluated
  check("evaluated", expected, true, false, [](const char* name) {
    auto t = make_trainer<net>(POLICIES, config_of(name));
    auto input = data.batches();
    t.train(input, {.steps = stop});
    t.evaluate(data.all().batch(7), {.use_averages = AVERAGED});
    t.predict(data.all().batch(9), [](const predictions&) {});
    t.train(input, {.max_steps = steps});
  });
#endif
#ifdef LAW_validated
  check("validated", without_validation(expected), true, false, [](const char* name) {
    auto t = make_trainer<net>(POLICIES, config_of(name));
    t.train(
        data.batches(),
        {.max_steps = steps,
         .validation = {.data = data.all().batch(20), .every_n_steps = 2, .evaluation = {.use_averages = AVERAGED}}});
  });
#endif
#ifdef LAW_observed
  check("observed", expected, true, false, [](const char* name) {
    auto config = config_of(name);
    config.save_summary_steps = 1, config.log_step_count_steps = 1, config.save_checkpoints_steps = 1;
    config.keep_checkpoint_max = 2, config.checkpoint_save_graph_def = true;
    train_to(make_trainer<net>(POLICIES, config), steps);
  });
#endif
#ifdef LAW_codec
  check("codec", expected, true, false, [](const char* name) {
    train_to(make_trainer<net>(POLICIES, CODEC, config_of(name)), stop);
    train_to(make_trainer<net>(POLICIES, CODEC, config_of(name)), steps);
    const auto state = read_state_file(posix{}, place / name);
    opened_checkpoint<decltype(CODEC), posix> file({}, {}, join_path(place / name, state->newest));
    if (!file.result().ok()) raise(file.result().kind, file.result().problem);
    // Written again in the form that is compared.
    auto& content = file.result().content;
    decoded_elsewhere.step = content.step;
    decoded_elsewhere.records.clear();
    for (const auto& r : content.records)
      decoded_elsewhere.records[text(r.name, ' ', name_of(r.type), ' ', to_text(r.dims))] = {r.bytes.begin(),
                                                                                             r.bytes.end()};
  });
#endif
#ifdef LAW_handed
  check("handed", expected, true, false, [](const char* name) {
    {
      auto sv = make_supervisor<net>({.logdir = place / name, .tf_random_seed = SEED}, POLICIES);
      auto sess = sv.managed_session("", data.batches());
      for (int i = 0; i < stop; ++i) sess.run();
    }
    auto e = make_estimator<net>(POLICIES, config_of(name));
    e.train([] { return data.batches(); }, {.max_steps = stop + (steps - stop) / 2});
    train_to(make_trainer(model_of_the_program, POLICIES, config_of(name)), steps);
  });
#endif
#if defined(LAW_session) || defined(LAW_static) || defined(LAW_model_fn)
  // Policies that graphs take, and batches in the order of the data.
  run_files::content in_order;
  check("in order", in_order, true, false, [&](const char* name) {
    auto t = make_trainer<net>(OF_A_GRAPH, config_of(name));
    t.train(data.in_order(size), {.max_steps = steps});
    in_order = left_in(name);
  });
#endif
#ifdef LAW_session
  {
    graph g;
    const model_spec spec = net(g);
    const value step = create_global_step(g);
    optimizer opt{OF_A_GRAPH};
    value train = opt.minimize(spec.loss, {.global_step = step});
    session s{g, opt};
    s.initialize(SEED);
    for (int i = 0; i < steps; ++i) {
      const batch_of_data b(i);
      s.run(train, {{"x", b.x}, {"y", b.y}, {"ids", b.ids}});
    }
    compare("session", in_order, [&](const std::string& of) { return s.variable(of); });
  }
#endif
#ifdef LAW_model_fn
  try {
    const char* const name = "model_fn";
    estimator e(
        [](const named_tensors& features, value labels, mode m) {
          const model_spec model = net_of(features.of(), features["x"], labels, features["ids"]);
          estimator_spec spec{.mode = m, .loss = model.loss};
          if (m != mode::train) return spec;
          optimizer opt{OF_A_GRAPH};
          spec.train_op = opt.minimize(spec.loss, {.global_step = get_global_step(features.of())});
          spec.optimizers = opt;
          return spec;
        },
        {.config = config_of(name)});
    const auto input = [] { return labelled(data.in_order(size), {"y"}); };
    e.train(input, {.max_steps = stop, .hooks = {estimator_input_hook(e)}});
    e.train(input, {.max_steps = steps, .hooks = {estimator_input_hook(e)}});
    const auto left = left_in(name);
    compare(name, in_order, [&](const std::string& of) {
      for (const auto& [record, bytes] : left.records)
        if (record.substr(0, record.find(' ')) == of)
          return const_tensor_view(uint8, {static_cast<std::int64_t>(bytes.size())}, bytes.data());
      raise(status::not_found, text("there is no ", of));
    });
  } catch (const std::exception& e) {
    std::printf("model_fn: FAILED: %s\n", e.what());
    ++failures;
  }
#endif
#ifdef LAW_static
  {
    static auto s = make_static_stepper<net>(static_batch<size>{}, OF_A_GRAPH);
    s.initialize(SEED);
    for (int i = 0; i < steps; ++i) {
      const batch_of_data b(i);
      std::ranges::copy(b.x, s.template input<"x">().begin());
      std::ranges::copy(b.y, s.template input<"y">().begin());
      s.step();
    }
    state_list list;
    s.remembers(list);
    compare("static", in_order, [&](const std::string& of) {
      for (const auto& e : list.entries())
        if (e.name == of) return const_tensor_view(e.type, e.dims, e.bytes.data());
      raise(status::not_found, text("there is no ", of));
    });
  }
#endif
#if defined(LAW_cluster) || defined(LAW_simulated) || defined(LAW_again)
  run_files::content alone;
  check("alone", alone, true, false, [&](const char* name) {
    auto t = make_trainer<net>(ALONE, config_of(name));
    t.train(data.in_order(size), {.max_steps = steps});
    alone = left_in(name);
  });
#endif
#ifdef LAW_cluster
  check("cluster", alone, false, true, [](const char* name) {
    local_cluster{.ps = servers, .workers = workers}.run([&](server& here) { task(here, name, steps); });
  });
#endif
#ifdef LAW_again
  check("again", alone, false, true, [](const char* name) {
    local_cluster{.ps = servers, .workers = workers}.run([&](server& here) { task(here, name, stop); });
    local_cluster{.ps = servers == 0 ? 0 : 3 - servers, .workers = workers}.run(
        [&](server& here) { task(here, name, steps); });
  });
#endif
#ifdef LAW_simulated
  check("simulated", alone, false, true, [](const char* name) {
    simulated{
        .seed = SEED, .ps = servers, .workers = workers, .faults = simulated_faults::drawn(SEED), .most_secs = 3600}
        .run([&](server& here) { task(here, name, steps); });
  });
#endif
  return failures != 0;
}
