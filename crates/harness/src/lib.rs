//! The cmdgate command: judge, decide, confine and record the commands of a coding agent.
