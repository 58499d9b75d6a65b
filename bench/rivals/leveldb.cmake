# Answers for LevelDB's build a question that it would get wrong: whether the compiler knows -Wthread-safety.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE INTERNAL "")
