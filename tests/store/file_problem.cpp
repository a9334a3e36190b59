#include "gradus/store/file_problem.hpp"

#include <doctest/doctest.h>

using namespace gradus;

TEST_CASE("file_problem: kind and remedy by errno, also for one that nobody thought of") {
  CHECK(!file_problem{});
  CHECK(status_of_errno(ENOSPC) == status::resource_exhausted);
  CHECK(status_of_errno(EACCES) == status::permission_denied);
  CHECK(status_of_errno(ENOENT) == status::not_found);
  CHECK(status_of_errno(EIO) == status::data_loss);
  CHECK(status_of_errno(ENOTTY) == status::unavailable);
  CHECK(describe({EACCES, "create", "runs/a"}) ==
        "cannot create \"runs/a\": Permission denied (check the directory's owner and permissions, or choose "
        "another directory)");
  CHECK(describe({ENOTTY, "write", "a"}) ==
        "cannot write \"a\": Inappropriate ioctl for device (try again, or choose another directory)");
  CHECK_THROWS_AS(raise({EROFS, "rename", "a"}), permission_denied);
}
