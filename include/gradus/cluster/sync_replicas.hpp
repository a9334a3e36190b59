// The class that was sync_replicas is sync_replicas_optimizer (sync_replicas_optimizer.hpp); sync_replicas is the
// policy of a cluster. This header is here until 0.7.0.
#pragma once
#include "staleness.hpp"
#include "sync_replicas_optimizer.hpp"
