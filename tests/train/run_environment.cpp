#include <gradus/train/run_environment.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace gradus;

namespace {

run_config task_of(std::string_view json, run_config given = {}) { return run_config::from_tf_config(json, given); }

template <class Error = invalid_argument, class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing was refused)";
}
std::string refused(std::string_view json, run_config given = {}) {
  return refusal([&] { task_of(json, given); });
}
bool says(const std::string& message, std::string_view words) { return message.find(words) != std::string::npos; }

// The cluster of the documentation of tf.estimator.RunConfig.
std::string in_six(std::string_view type, int index, std::string_view more = {}) {
  return text(R"({"cluster": {"chief": ["host0:2222"], "ps": ["host1:2222", "host2:2222"],
                  "worker": ["host3:2222", "host4:2222", "host5:2222"]},
                  "task": {"type": ")",
              type, R"(", "index": )", index, "}", more, "}");
}
std::string in_legacy(std::string_view type, int index, std::string_view more = {}) {
  return text(R"({"cluster": {"master": ["host0:0"], "ps": ["host1:1", "host2:2"],
                  "worker": ["host3:3", "host4:4", "host5:5"]},
                  "task": {"type": ")",
              type, R"(", "index": )", index, "}", more, "}");
}
using numbers = std::optional<double>;
numbers of(const interval& i) { return i.has_value() ? numbers(i.value()) : numbers(); }
using filters = std::vector<std::string>;
filters filters_of(const run_config& c) { return c.session_config.value().device_filters; }

}  // namespace

TEST_CASE("R2 replace of each field") {
  const run_config before{.model_dir = "runs/a", .keep_checkpoint_best = {.count = 2}};
  const session_options options{.allow_soft_placement = true, .device_filters = {"/job:ps"}};
  const run_config after = before.replace({{"model_dir", "runs/b"},
                                           {"tf_random_seed", 11},
                                           {"save_summary_steps", 12},
                                           {"save_checkpoints_secs", 14},
                                           {"session_config", options},
                                           {"keep_checkpoint_max", 16},
                                           {"keep_checkpoint_every_n_hours", 17.5},
                                           {"log_step_count_steps", 18u},
                                           {"train_distribute", none},
                                           {"device_fn", [](const placed_op& op) { return text("/", op.type); }},
                                           {"protocol", "in_process"},
                                           {"eval_distribute", none},
                                           {"experimental_distribute", distribute_config{}},
                                           {"experimental_max_worker_delay_secs", -5},
                                           {"session_creation_timeout_secs", 21},
                                           {"checkpoint_save_graph_def", false}});
  CHECK(after.model_dir == "runs/b");
  CHECK(after.tf_random_seed == 11u);
  CHECK(after.save_summary_steps == 12);
  CHECK(of(after.save_checkpoints_secs) == 14.0);
  CHECK(after.session_config.value() == options);
  CHECK(after.keep_checkpoint_max == 16);
  CHECK(after.keep_checkpoint_every_n_hours == 17.5);
  CHECK(after.log_step_count_steps == 18);
  CHECK(after.device_fn.value()({.type = "matmul"}) == "/matmul");
  CHECK(after.protocol.value() == "in_process");
  CHECK((after.experimental_distribute.has_value() && !before.experimental_distribute.has_value()));
  CHECK(after.experimental_max_worker_delay_secs == -5);
  CHECK(after.session_creation_timeout_secs == 21);
  CHECK(!after.checkpoint_save_graph_def);
  CHECK(after.keep_checkpoint_best.count == 2);  // what TensorFlow does not have stays
  // The receiver is unchanged.
  CHECK((before.model_dir == "runs/a" && !before.tf_random_seed.has_value() && before.save_summary_steps == 100));
  CHECK((before.keep_checkpoint_max == 5 && before.checkpoint_save_graph_def && !before.protocol.has_value()));
  CHECK((!before.device_fn.has_value() && !before.session_config.has_value()));
  // And none for each that may be.
  const run_config nothing = after.replace({{"model_dir", none},
                                            {"tf_random_seed", none},
                                            {"save_summary_steps", none},
                                            {"save_checkpoints_secs", none},
                                            {"session_config", none},
                                            {"keep_checkpoint_max", none},
                                            {"keep_checkpoint_every_n_hours", none},
                                            {"log_step_count_steps", none},
                                            {"device_fn", none},
                                            {"protocol", none},
                                            {"experimental_max_worker_delay_secs", none}});
  CHECK((!nothing.model_dir.given() && !nothing.tf_random_seed.has_value() && !nothing.device_fn.has_value()));
  CHECK((!nothing.save_summary_steps.has_value() && !nothing.log_step_count_steps.has_value()));
  CHECK((!nothing.session_config.has_value() && !nothing.keep_checkpoint_max.has_value()));
  CHECK((!nothing.keep_checkpoint_every_n_hours.has_value() && !nothing.protocol.has_value()));
  CHECK(!nothing.experimental_max_worker_delay_secs.has_value());
}

TEST_CASE("R2 replace refuses what it does not know, and each bad value") {
  const run_config c = task_of(in_six("worker", 1));
  for (const char* name : {"master", "cluster_spec", "task_id", "task_type", "is_chief", "num_ps_replicas", "service",
                           "evaluation_master", "some_undefined_property", "", "place", "keep_checkpoint_best"}) {
    CAPTURE(name);
    CHECK(says(refusal([&] { c.replace({{name, 1}}); }), text("replacing ", name, " is not supported")));
  }
  struct {
    std::string_view name;
    config_value value;
    std::string_view words;
  } const bad[] = {
      {"model_dir", "", "model_dir must not be empty"},
      {"model_dir", 3, "model_dir must be a text, got a whole number"},
      {"tf_random_seed", 1.0, "tf_random_seed must be a whole number, got a number"},
      {"tf_random_seed", -1, "tf_random_seed must be from 0 to 18446744073709551615, got -1"},
      {"save_summary_steps", -1, "save_summary_steps must be at least 0, got -1"},
      {"save_summary_steps", "12", "save_summary_steps must be a number, got a text"},
      {"save_checkpoints_steps", -1, "save_checkpoints_steps must be at least 0, got -1"},
      {"save_checkpoints_secs", -1, "save_checkpoints_secs must be at least 0, got -1"},
      {"session_config", 5, "session_config must be session options, got a whole number"},
      {"keep_checkpoint_max", -1, "keep_checkpoint_max must be at least 0, got -1"},
      {"keep_checkpoint_max", std::int64_t{1} << 40, "keep_checkpoint_max must be from"},
      {"keep_checkpoint_every_n_hours", 0, "keep_checkpoint_every_n_hours must be above 0, got 0"},
      {"log_step_count_steps", 0, "log_step_count_steps must be above 0, got 0"},
      {"device_fn", 5, "device_fn must be callable with one argument"},
      {"protocol", "x", "protocol must be none, \"in_process\""},
      {"experimental_max_worker_delay_secs", 5.5, "experimental_max_worker_delay_secs must be a whole number"},
      {"session_creation_timeout_secs", -3, "session_creation_timeout_secs must be above 0, got -3"},
      {"checkpoint_save_graph_def", none, "checkpoint_save_graph_def must be a truth value, got none"},
      {"checkpoint_save_graph_def", 1, "checkpoint_save_graph_def must be a truth value, got a whole number"},
      {"experimental_distribute", "mirrored", "experimental_distribute must be a distribute_config, got a text"},
  };
  for (const auto& b : bad) {
    CAPTURE(b.name);
    CHECK(says(refusal([&] { c.replace({{b.name, b.value}}); }), b.words));
  }
  CHECK(says(refusal<unimplemented>([&] { c.replace({{"train_distribute", "mirrored"}}); }), "train_distribute"));
  CHECK(strategy_of(c.replace({{"train_distribute", ssp{2}}})).has_value());
  CHECK(says(refusal<invalid_argument>([&] {
               c.replace({{"train_distribute", 3}});
             }),
             "train_distribute must be a strategy such as sync_replicas{}, got a whole number"));
  CHECK(says(refusal<unimplemented>([&] { c.replace({{"eval_distribute", "mirrored"}}); }), "eval_distribute"));
}

TEST_CASE("R7 steps and seconds: the interval that gets a number turns the other to none; both; none") {
  const auto in_force = [](const run_config& c) {
    const auto i = checkpoint_interval_of(c);
    return std::pair(of(i.steps), of(i.secs));
  };
  const run_config fresh;
  CHECK(in_force(fresh) == std::pair(numbers(), numbers(600)));
  CHECK(in_force(fresh.replace({{"save_checkpoints_steps", 100}})) == std::pair(numbers(100), numbers()));
  CHECK(in_force(fresh.replace({{"save_checkpoints_steps", none}})) == std::pair(numbers(), numbers(600)));
  CHECK(in_force(fresh.replace({{"save_checkpoints_secs", none}})) == std::pair(numbers(), numbers()));
  const run_config steps{.save_checkpoints_steps = 30};
  CHECK(in_force(steps.replace({{"save_checkpoints_secs", 40}})) == std::pair(numbers(), numbers(40)));
  CHECK(in_force(steps.replace({{"save_checkpoints_secs", none}})) == std::pair(numbers(30), numbers()));
  CHECK(in_force(steps.replace({{"save_checkpoints_secs", 40}}).replace({{"save_checkpoints_steps", 50}})) ==
        std::pair(numbers(50), numbers()));
  CHECK(in_force(steps.replace({{"save_checkpoints_steps", none}, {"save_checkpoints_secs", 7}})) ==
        std::pair(numbers(), numbers(7)));
  CHECK(in_force(fresh.replace({{"save_checkpoints_steps", none}, {"save_checkpoints_secs", none}})) ==
        std::pair(numbers(), numbers()));
  CHECK(says(refusal([&] {
               fresh.replace({{"save_checkpoints_steps", 1}, {"save_checkpoints_secs", 2}});
             }),
             "cannot both be replaced"));
  CHECK(says(refusal([&] { validate({.save_checkpoints_steps = 1, .save_checkpoints_secs = 2}); }), "both given"));
}

TEST_CASE("R4 session_master and eval_session_master, of a process that is alone and in a cluster") {
  const auto local = task_of(R"({"session_master": "_my_master", "eval_session_master": "_my_eval"})");
  CHECK(local.master() == "_my_master");
  CHECK(local.evaluation_master() == "_my_eval");
  CHECK((local.is_chief() && local.task_type() == "worker" && local.num_worker_replicas() == 1));
  const std::string_view both = R"(, "session_master": "_my_master", "eval_session_master": "_my_eval")";
  for (const auto& [type, index] : std::map<std::string, int>{{"chief", 0}, {"worker", 2}, {"ps", 1}}) {
    CAPTURE(type);
    const auto c = task_of(in_six(type, index, both));
    CHECK(c.master() == "_my_master");
    CHECK(c.evaluation_master().empty());
  }
  const auto evaluator = task_of(in_six("evaluator", 0, both));
  CHECK(evaluator.master().empty());
  CHECK(evaluator.evaluation_master() == "_my_eval");
  CHECK(task_of(in_legacy("master", 0, both)).master() == "_my_master");
  CHECK(task_of(in_legacy("worker", 0, both)).evaluation_master().empty());
  CHECK(says(refused(R"({"session_master": 5})"), "\"session_master\" must be a string"));
}

TEST_CASE("R5 what follows from the role: chief, master, worker 1, ps 0, evaluator, another") {
  const cluster_spec six{{"chief", {"host0:2222"}},
                         {"ps", {"host1:2222", "host2:2222"}},
                         {"worker", {"host3:2222", "host4:2222", "host5:2222"}}};
  const auto chief = task_of(in_six("chief", 0));
  CHECK((chief.cluster_spec() == six && chief.task_type() == "chief" && chief.task_id() == 0 && chief.is_chief()));
  CHECK((chief.master() == "grpc://host0:2222" && chief.num_ps_replicas() == 2 && chief.num_worker_replicas() == 4));
  CHECK(chief.evaluation_master().empty());
  CHECK(filters_of(chief) == filters{"/job:ps", "/job:chief"});
  CHECK(chief.session_config.value().allow_soft_placement);

  const auto master = task_of(in_legacy("master", 0));
  CHECK((master.task_type() == "master" && master.task_id() == 0 && master.is_chief()));
  CHECK((master.master() == "grpc://host0:0" && master.num_ps_replicas() == 2 && master.num_worker_replicas() == 4));
  CHECK(master.cluster_spec().task_address("worker", 2) == "host5:5");
  CHECK(filters_of(master) == filters{"/job:ps", "/job:master"});

  const auto worker = task_of(in_six("worker", 1));
  CHECK((worker.cluster_spec() == six && worker.task_type() == "worker" && worker.task_id() == 1));
  CHECK((worker.master() == "grpc://host4:2222" && !worker.is_chief()));
  CHECK((worker.num_ps_replicas() == 2 && worker.num_worker_replicas() == 4));
  CHECK(filters_of(worker) == filters{"/job:ps", "/job:worker/task:1"});

  const auto ps = task_of(in_six("ps", 0));
  CHECK((ps.cluster_spec() == six && ps.task_type() == "ps" && ps.task_id() == 0 && !ps.is_chief()));
  CHECK((ps.master() == "grpc://host1:2222" && ps.num_ps_replicas() == 2 && ps.num_worker_replicas() == 4));
  CHECK(filters_of(ps) == filters{"/job:ps", "/job:worker", "/job:chief", "/job:master"});

  const auto evaluator = task_of(in_six("evaluator", 12));  // its index has no bound, and it is not in the cluster
  CHECK((evaluator.cluster_spec() == cluster_spec{} && evaluator.task_type() == "evaluator"));
  CHECK((evaluator.task_id() == 12 && !evaluator.is_chief() && evaluator.master().empty()));
  CHECK((evaluator.num_ps_replicas() == 0 && evaluator.num_worker_replicas() == 0));
  CHECK(!evaluator.session_config.has_value());

  const auto other = task_of(R"({"cluster": {"chief": ["host3:3"], "worker": ["host4:4"], "other_type": ["host5:5"]},
                                 "task": {"type": "other_type", "index": 0}})");
  CHECK((other.task_type() == "other_type" && other.task_id() == 0 && !other.is_chief()));
  CHECK((other.master() == "grpc://host5:5" && other.num_ps_replicas() == 0 && other.num_worker_replicas() == 2));
  CHECK(!other.session_config.has_value());

  // What the program asks of sessions stays.
  const session_options mine{.isolate_session_state = true};
  CHECK(task_of(in_six("worker", 1), {.session_config = mine}).session_config.value() == mine);
  // A cluster of one task has no other to be asked for.
  const auto single = task_of(R"({"cluster": {"chief": ["host0:0"]}, "task": {"type": "chief", "index": 0}})");
  CHECK((single.master().empty() && single.is_chief() && single.num_worker_replicas() == 1));
  CHECK(single.cluster_spec().num_tasks("chief") == 1);
  CHECK(task_of(R"({"cluster": {"chief": {"0": "host0:0"}}, "task": {"type": "chief", "index": "0"}})").task_id() == 0);
}

TEST_CASE("R6 global ids: chief, others by name, ps") {
  const auto id = [](const std::string& json) {
    const or_none<int> found = task_of(json).global_id_in_cluster();
    return found.has_value() ? found.value() : -1;
  };
  CHECK(id(in_six("chief", 0)) == 0);
  CHECK((id(in_six("worker", 0)) == 1 && id(in_six("worker", 1)) == 2 && id(in_six("worker", 2)) == 3));
  CHECK((id(in_six("ps", 0)) == 4 && id(in_six("ps", 1)) == 5));
  CHECK(!task_of(in_six("evaluator", 0)).global_id_in_cluster().has_value());
  CHECK((id(in_legacy("master", 0)) == 0 && id(in_legacy("worker", 2)) == 3 && id(in_legacy("ps", 1)) == 5));
  const auto others = [&](std::string_view type, int index) {
    return id(text(R"({"cluster": {"worker": ["w0:1"], "zoo": ["z0:1"], "ps": ["p0:1"], "chief": ["c0:1"],
                       "other_1": ["o0:1", "o1:1"], "other_0": ["q0:1", "q1:1"]},
                       "task": {"type": ")",
                   type, R"(", "index": )", index, "}}"));
  };
  CHECK((others("chief", 0) == 0 && others("other_0", 0) == 1 && others("other_0", 1) == 2));
  CHECK((others("other_1", 0) == 3 && others("other_1", 1) == 4 && others("worker", 0) == 5));
  CHECK((others("zoo", 0) == 6 && others("ps", 0) == 7));
  // Numbers that are left out of a job leave no hole.
  CHECK(id(R"({"cluster": {"chief": ["c:1"], "worker": {"3": "w3:1", "7": "w7:1"}, "ps": ["p:1"]},
              "task": {"type": "worker", "index": 7}})") == 2);
}

TEST_CASE("R8 service: an object as it stands; none; anything else is refused") {
  const auto c = task_of(R"({"service": {"key1": "value1", "deep": {"key": [1, 2.5, null]}}})");
  CHECK(c.service().value() == R"({"key1": "value1", "deep": {"key": [1, 2.5, null]}})");
  CHECK(!task_of("{}").service().has_value());
  CHECK(says(refused(R"({"service": 1000})"), "if \"service\" is set, it must be an object"));
  CHECK(says(refused(R"({"service": ["a"]})"), "if \"service\" is set, it must be an object"));
  CHECK(task_of(in_six("evaluator", 0, R"(, "service": {})")).service().value() == "{}");
}

TEST_CASE("R9 model_dir: from one, from both alike, different, empty") {
  CHECK(task_of(R"({"model_dir": "/tmp/a"})").model_dir == "/tmp/a");
  CHECK(task_of("{}", {.model_dir = "/tmp/a"}).model_dir == "/tmp/a");
  CHECK(task_of(R"({"model_dir": "/tmp/a"})", {.model_dir = "/tmp/a"}).model_dir == "/tmp/a");
  CHECK(says(refused(R"({"model_dir": "/tmp/b"})", {.model_dir = "/tmp/a"}), "they must be the same if both are set"));
  CHECK(says(refused(R"({"model_dir": ""})"), "\"model_dir\" must not be empty"));
  CHECK(says(refused(R"({"model_dir": ""})", {.model_dir = "/tmp/a"}), "\"model_dir\" must not be empty"));
  CHECK(says(refused("{}", {.model_dir = ""}), "model_dir must not be empty"));
  CHECK(says(refused(R"({"model_dir": 5})"), "\"model_dir\" must be a string"));
  // TF_CONFIG is not asked again.
  CHECK(task_of(R"({"model_dir": "/tmp/a"})").replace({{"model_dir", "/tmp/b"}}).model_dir == "/tmp/b");
  CHECK(task_of(in_six("ps", 1)).replace({{"save_summary_steps", 5}}).global_id_in_cluster() == 5);
}

TEST_CASE("TF_CONFIG: what makes no sense is named") {
  CHECK(says(refused(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}})"),
             "it must have one \"chief\" node"));
  CHECK(says(refused(R"({"cluster": {"chief": []}, "task": {"type": "chief", "index": 0}})"),
             "it must have one \"chief\" node"));
  CHECK(says(refused(R"({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})"),
             "must have only one \"chief\" node, got 2"));
  CHECK(says(refused(R"({"cluster": {"master": ["a:1", "b:1"]}, "task": {"type": "master", "index": 0}})"),
             "must have only one \"master\" node, got 2"));
  const std::string six = in_six("chief", 0), cluster = six.substr(0, six.find("\"task\""));
  CHECK(says(refused(cluster + R"("task": {"index": 0}})"), "the task's type must be set"));
  CHECK(says(refused(cluster + R"("service": {}})"), "the task's type must be set"));
  CHECK(says(refused(cluster + R"("task": {"type": "worker"}})"), "the task's index must be set"));
  CHECK(says(refused(in_six("worker", -1)), "the task's index must be at least 0"));
  CHECK(says(refused(in_six("evaluator", -1)), "the task's index must be at least 0"));
  CHECK(says(refused(in_six("worker", 3)), "3 is not a valid task index of \"worker\", which has 0, 1, 2"));
  CHECK(says(refused(in_six("wizard", 0)), "\"wizard\" is not a valid task type; the cluster has chief, ps, worker"));
  CHECK(says(refused(R"({"cluster": {"master": ["a:1"], "chief": ["b:1"]}, "task": {"type": "chief", "index": 0}})"),
             "the job \"chief\" is not supported"));
  CHECK(says(refused(in_legacy("evaluator", 0)), "the task type \"evaluator\" is not supported"));
  CHECK(says(refused(R"({"task": {"type": "ps", "index": 0}})"), "the task's type must be \"worker\", got \"ps\""));
  CHECK(says(refused(R"({"task": {"type": "evaluator"}})"), "the task's type must be \"worker\""));
  CHECK(says(refused(R"({"task": {"type": "worker", "index": 1}})"), "the task's index must be 0, got 1"));
  CHECK(says(refused(R"({"cluster": {}, "task": {"index": 2}})"), "the task's index must be 0, got 2"));
  CHECK(task_of(R"({"task": {"type": "worker", "index": 0}, "rpc_layer": "grpc"})").is_chief());
  CHECK(task_of(R"({"cluster": null, "task": null, "session_master": null})").master().empty());
}

TEST_CASE("TF_CONFIG: text from outside is read strictly, and costs what its length allows") {
  for (const char* bad : {"", " ", "[]", "5", "null", "{", "{\"task\"}", "{\"task\": {\"index\": 0}} x", "{'a': 1}",
                          "{\"a\": NaN}", "\"{}\""}) {
    CAPTURE(bad);
    CHECK(says(refused(bad), "it is no JSON object that can be read: at byte "));
  }
  CHECK(says(refused(R"({"task": {}, "task": {}})"), "the key \"task\" stands in the object"));
  CHECK(says(refused(R"({"cluster": {"chief": ["a:1"], "chief": ["b:1"]}})"), "the key \"chief\" stands in"));
  for (const char* deep :
       {"{\"service\": ", "{\"other\": ", "{\"cluster\": ", "{\"task\": ", "{\"session_master\": "}) {
    std::string nested = deep;
    for (int i = 0; i < 100'000; ++i) nested += "{\"a\": ";
    CAPTURE(deep);
    CHECK(says(refused(nested), "TF_CONFIG: "));
  }
  CHECK(refused(std::string(100 << 20, ' ')) ==
        text("TF_CONFIG: it has ", 100 << 20, " bytes; expected at most 1048576"));
  const auto with = [](std::string_view worker) {
    return text(R"({"cluster": {"chief": ["c:1"], "worker": )", worker, R"(}, "task": {"type": "chief", "index": 0}})");
  };
  CHECK(says(refused(with(R"(["host:65536"])")), "has the address \"host:65536\", whose port is not from 0 to 65535"));
  CHECK(says(refused(with(R"(["host:99999999999999999999"])")), "whose port is not from 0 to 65535"));
  CHECK(says(refused(with(R"(["host:-1"])")), "whose port is not from 0 to 65535"));
  CHECK(task_of(with(R"(["host:65535", "[::1]:0", "unix_path"])")).num_worker_replicas() == 4);
  CHECK(says(refused(with(R"({"1099511627776": "a:1"})")), "must be at most 1048575, got 1099511627776"));
  CHECK(says(refused(with(R"({"99999999999999999999999": "a:1"})")), "must be at most 1048575"));
  CHECK(says(refused(with(R"({"1048576": "a:1"})")), "must be at most 1048575"));
  CHECK(task_of(with(R"({"1048575": "a:1"})")).num_worker_replicas() == 2);
  CHECK(says(refused(with(R"({"-1": "a:1"})")), "is below 0: -1"));
  CHECK(says(refused(with(R"({"x": "a:1"})")), "must be a whole number, got \"x\""));
  CHECK(says(refused(with(R"({"1": "a:1", "01": "b:1"})")), "has task 1 twice"));
  CHECK(says(refused(with(R"({"0": 5})")), "must be a string \"host:port\""));
  CHECK(says(refused(with(R"(["a:1", 5])")), "must be a string \"host:port\""));
  CHECK(says(refused(with(R"([""])")), "has no address for task 0"));
  CHECK(says(refused(with("\"a:1\"")), "must be a list of addresses, or an object of them by index"));
  CHECK(says(refused(with("7")), "must be a list of addresses"));
  CHECK(says(refused(R"({"cluster": ["a:1"]})"), "\"cluster\" must be an object of jobs"));
  CHECK(says(refused(R"({"cluster": {"1": ["a:1"]}})"), "has no name that a device can carry"));
  CHECK(says(refused(R"({"task": ["worker", 1]})"), "\"task\" must be an object"));
  for (const char* index : {"1.5", "true", "\"\"", "\"one\"", "[]", "1e0", "\"1 \""}) {
    CAPTURE(index);
    CHECK(says(refused(text(R"({"task": {"type": "worker", "index": )", index, "}}")), "must be a whole number"));
  }
  CHECK(says(refused(R"({"task": {"index": 1099511627776}})"), "the task's index must be at most 1048575"));
  CHECK(says(refused(R"({"task": {"index": -1099511627776}})"), "the task's index must be 0"));
}

TEST_CASE("devices of an estimator's nodes: of device_fn, of the cluster's parameter servers, of nobody") {
  const auto given = device_function_of({.device_fn = [](const placed_op&) { return std::string("/cpu:1"); }});
  CHECK(given({}) == "/cpu:1");
  CHECK(!device_function_of({}));
  CHECK(!device_function_of(task_of(in_six("evaluator", 0))));
  const auto worker = device_function_of(task_of(in_six("worker", 1)));
  CHECK(worker({.type = "VariableV2"}) == "/job:ps/task:0");
  CHECK(worker({.type = "MatMul"}) == "/job:worker/task:1");
  CHECK(worker({.type = "VariableV2", .device = "/cpu:0"}) == "/job:ps/task:1/device:CPU:0");
  CHECK(worker({.type = "VariableV2"}) == "/job:ps/task:0");
  CHECK(device_function_of(task_of(in_six("chief", 0)))({.type = "Add"}) == "/job:chief/task:0");
}

TEST_CASE("TF_CONFIG is read from the environment; absent, it says nothing") {
  const char* const before = std::getenv("TF_CONFIG");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("TF_CONFIG");
  CHECK(run_config::from_environment().task_type() == "worker");
  CHECK(run_config::from_environment({.model_dir = "runs/a"}).model_dir == "runs/a");
  ::setenv("TF_CONFIG", in_six("worker", 2).c_str(), 1);
  const auto c = run_config::from_environment({.save_summary_steps = 7});
  CHECK((c.task_type() == "worker" && c.task_id() == 2 && c.save_summary_steps == 7));
  CHECK(run_config{}.task_id() == 0);  // a plain one does not look
  ::setenv("TF_CONFIG", "", 1);
  CHECK(says(refusal([] { run_config::from_environment(); }), "no JSON object"));
  before == nullptr ? ::unsetenv("TF_CONFIG") : ::setenv("TF_CONFIG", kept.c_str(), 1);
}
