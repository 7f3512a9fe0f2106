//! The macOS profile: a pure function of [`crate::plan::Plan`], compiled and tested on every system.
//!
//! Agreed shape: `profile(&Plan) -> Profile { text, parameters }` and `argv(&Profile, command) -> Vec<OsString>`.
