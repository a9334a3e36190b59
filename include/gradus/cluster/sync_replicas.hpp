// Moved to cluster/sync_replicas_optimizer.hpp. The old name is here until 0.7.0.
#pragma once
#include "sync_replicas_optimizer.hpp"
