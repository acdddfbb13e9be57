# Run at install time: writes optireduce.pc with the prefix that was given to the install.
get_filename_component(prefix "${CMAKE_INSTALL_PREFIX}" ABSOLUTE)
set(directory "$ENV{DESTDIR}${prefix}/${OPTIREDUCE_PC_DIR}")
file(READ "${OPTIREDUCE_PC_IN}" text)
string(REPLACE "%PREFIX%" "${prefix}" text "${text}")
file(MAKE_DIRECTORY "${directory}")
file(WRITE "${directory}/optireduce.pc" "${text}")
message(STATUS "Installing: ${directory}/optireduce.pc")
