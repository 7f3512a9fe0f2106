//! Layered allow, ask and deny rules for reads, writes, programs and network hosts; deny always wins.
//!
//! A [`Policy`] is a stack of [`Layer`]s, and asked about an [`Act`] on a target it answers with a
//! [`Ruling`]: the [`Effect`], and the rule and layer it came from. The strictest rule of all layers counts,
//! so nothing that is stacked on top can take a deny back.
//!
//! ```
//! use cmdgate_policy::{Act, Effect, Policy};
//! let policy = Policy::default()
//!     .layer("app")
//!     .allow_exec("npm*")
//!     .deny_exec("npm publish **");
//! assert_eq!(policy.check(Act::Exec, "npm test").effect, Effect::Allow);
//! let ruling = policy.check(Act::Exec, "npm publish --access public");
//! assert_eq!(ruling.effect, Effect::Deny);
//! assert_eq!(ruling.layer, "app");
//! assert_eq!(ruling.rule.unwrap().pattern, "npm publish **");
//! ```
//!
//! # What is absent
//!
//! No file is opened, no clock and no environment is read, and nothing is known of shells or programs: the
//! caller passes text, times, resolved paths and split words. Rules on programs say what may start, not what
//! it then does; that is for a sandbox.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod act;
mod builtin;
mod error;
mod file;
mod glob;
mod index;
mod instant;
mod layer;
mod lint;
mod pattern;
mod policy;
mod profile;
mod program;
mod rule;
mod ruling;
#[cfg(test)]
mod schema;
mod settings;
mod target;

/// The JSON Schema of policy files, for editors: `#:schema` at the top of a file names it.
pub const SCHEMA: &str = include_str!("../policy.schema.json");

pub use act::{Act, Defaults, Effect, UnknownName};
pub use error::{Location, PolicyError, PolicyErrorKind, PolicyErrors};
pub use file::{ExampleResult, PolicyFile};
pub use instant::{Timestamp, TimestampError};
pub use layer::Layer;
pub use lint::{Lint, LintCode, Severity, lint, lint_at, runs_anything};
pub use pattern::{MAX_PATTERN_BYTES, Pattern, PatternError, escape};
pub use policy::Policy;
pub use profile::Profile;
pub use program::Program;
pub use rule::Rule;
pub use ruling::{DEFAULT_LAYER, MatchedOn, RuleRef, Ruling};
pub use settings::{
    ApprovalPolicy, Environment, Grammar, Limits, Network, ProfileName, SandboxMode, Settings, Trace,
};
