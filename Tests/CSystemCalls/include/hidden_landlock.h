#ifndef CSYSTEMCALLS_HIDDEN_LANDLOCK_H
#define CSYSTEMCALLS_HIDDEN_LANDLOCK_H

/// Lets landlock_create_ruleset(2) fail with ENOSYS from now on, as in a kernel without Landlock: in the calling thread and in the
/// processes that it starts. Returns 0, or -1 with errno.
int csystemcalls_hide_landlock(void);

#endif
