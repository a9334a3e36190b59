// costs: 300
// Sessions on a server of this process, without messages and by them: TensorFlow's facts, whatever the way.
#include <gradus/cluster/local_messages.hpp>

#include "session_facts.hpp"

SESSION_FACTS(session_facts::direct, session_facts::over<gradus::local_messages>);
TEST_CASE_TEMPLATE_INVOKE(target_facts, session_facts::over<gradus::local_messages>);
