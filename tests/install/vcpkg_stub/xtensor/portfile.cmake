include("${CURRENT_PORT_DIR}/../stub.cmake")
