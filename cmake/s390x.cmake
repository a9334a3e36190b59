# A toolchain: IBM Z, which is big-endian, from Debian's g++-s390x-linux-gnu, its programs run by qemu-user. Read by tests/machines too.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_CXX_COMPILER s390x-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-s390x -L /usr/s390x-linux-gnu)
