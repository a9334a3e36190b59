// Sessions over gRPC: TensorFlow's facts about servers and their targets.
// one thread: its many are gRPC's, whose own locks no sanitizer sees; cluster/session_host.cpp has ours
// needs: grpc
// without sanitizers: gRPC's name resolution leaks ten bytes; cluster/remote_session.cpp has what is ours
// costs: 300
#include <gradus/cluster/grpc.hpp>

#include "session_facts.hpp"

SESSION_FACTS(session_facts::over<gradus::grpc>);
TEST_CASE_TEMPLATE_INVOKE(target_facts, session_facts::over<gradus::grpc>);
