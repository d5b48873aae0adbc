// The transport "threads".
#include "rig.hpp"
