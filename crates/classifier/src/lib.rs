//! Decides whether a shell command is provably read-only inside a project, with reasons and conditions.
