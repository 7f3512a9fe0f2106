//! How a tool's own judgement of a call composes with the generic decision (contract S13), in one place.

use cmdgate_policy::Effect;

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionSource {
    /// The path policy, the rules, the default or the approval policy.
    Generic,
    /// The tool's own judgement of the arguments.
    ToolOverride,
}

/// An effect and who decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// Allow, ask or deny.
    pub effect: Effect,
    /// Who decided.
    pub source: PermissionSource,
}

/// The generic decision comes first, and where it denies, it stands. Else the tool's own judgement counts, where it has
/// one.
///
/// ```
/// use cmdgate_harness::tools::{PermissionSource, compose};
/// use cmdgate_policy::Effect;
///
/// assert_eq!(compose(Effect::Ask, Some(Effect::Allow)).effect, Effect::Allow);
/// assert_eq!(compose(Effect::Deny, Some(Effect::Allow)).source, PermissionSource::Generic);
/// ```
pub const fn compose(generic: Effect, tool: Option<Effect>) -> Permission {
    match (generic, tool) {
        (Effect::Deny, _) | (_, None) => Permission { effect: generic, source: PermissionSource::Generic },
        (Effect::Allow | Effect::Ask, Some(effect)) => {
            Permission { effect, source: PermissionSource::ToolOverride }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract: S13
    #[test]
    fn every_pair_of_generic_decision_and_override() {
        let all = [Effect::Allow, Effect::Ask, Effect::Deny];
        for generic in all {
            assert_eq!(
                compose(generic, None),
                Permission { effect: generic, source: PermissionSource::Generic }
            );
            for over in all {
                let expected = if generic == Effect::Deny {
                    Permission { effect: Effect::Deny, source: PermissionSource::Generic }
                } else {
                    Permission { effect: over, source: PermissionSource::ToolOverride }
                };
                assert_eq!(compose(generic, Some(over)), expected, "{generic:?} {over:?}");
            }
        }
    }
}
