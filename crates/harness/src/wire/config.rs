//! Serialised forms of policy and configuration.

use super::SCHEMA_VERSION;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The effective settings, as `harness config show --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfigShown {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Every setting, under its name in a policy file; null where nothing sets it.
    pub settings: Value,
    /// With `--origin`: every file that was looked for, the weakest voice first; null without.
    pub origins: Option<Vec<WireOrigin>>,
    /// With `--origin`: for each single setting (`limits.timeout_ms`) the layer that it comes from, or all those that a list is
    /// joined from; null without.
    pub set_by: Option<BTreeMap<String, Vec<String>>>,
}

/// A file that was looked for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireOrigin {
    /// The layer that it makes.
    pub layer: &'static str,
    /// Where it is, or would be.
    pub path: String,
    /// `absent`, `read` or `only_tightens`.
    pub state: &'static str,
}

/// The effective policy, as `harness policy show --json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyShown {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The layers with their rules, the weakest voice first.
    pub layers: Vec<Value>,
    /// For each act, what is answered where no rule matches, and the layer that says so.
    pub defaults: serde_json::Map<String, Value>,
    /// As in `harness config show`.
    pub settings: Value,
}

/// What the rules say, as `harness policy check --json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyChecked {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The ruling, with effect, rule and layer.
    pub ruling: Value,
}

/// Doubtful rules, as `harness policy lint --json` prints them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyLinted {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The lints, each with code, severity and place.
    pub lints: Vec<Value>,
}

impl PolicyChecked {
    /// The serialised form of a ruling.
    pub const fn new(ruling: Value) -> Self {
        Self { schema_version: SCHEMA_VERSION, ruling }
    }
}

impl PolicyLinted {
    /// The serialised form of these lints.
    pub const fn new(lints: Vec<Value>) -> Self {
        Self { schema_version: SCHEMA_VERSION, lints }
    }
}
