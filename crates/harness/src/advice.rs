//! What a person can do about a decision that is not an allow. Nothing is advised that was not tried: the request is decided
//! again as it would be with the advice followed.

use crate::approve::remember;
use crate::config::PROJECT_FILE;
use crate::gate::{Action, Decision, Gate, Request, Source};
use crate::learn;
use crate::session::Session;
use cmdgate_classifier::Code;
use cmdgate_policy::{
    Act, Effect, Grammar, Layer, Policy, ProfileName, Rule, SandboxMode, Settings, Timestamp,
};
use std::path::{Component, Path};
use std::time::SystemTime;

/// Something that would change a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// In the grammar `sequence` the command is known to be harmless.
    Sequence,
    /// These rules together allow it.
    Rules(Vec<Rule>),
    /// Only the read_only sandbox is why it is refused outright; with `workspace_write` this would be decided.
    WorkspaceWrite {
        /// Allow or ask.
        then: Effect,
        /// Whether the project has no policy file yet, so that `harness init` can write one.
        may_init: bool,
    },
}

impl Advice {
    /// As a line of help.
    pub fn line(&self) -> String {
        match self {
            Self::Sequence => {
                "in the grammar `sequence` it is allowed: `--grammar sequence`, or `grammar = \"sequence\"` in the user's \
                 policy file"
                    .to_owned()
            }
            Self::Rules(rules) => {
                let texts: Vec<String> = rules.iter().map(text_of).collect();
                let (these, would) = match texts.len() {
                    1 => ("this rule", "would allow it"),
                    _ => ("these rules", "together would allow it, each of them wherever it stands"),
                };
                format!("{these} in the user's policy file {would}: {}", texts.join(" and "))
            }
            Self::WorkspaceWrite { then, may_init } => {
                let then = match then {
                    Effect::Allow => "it is allowed",
                    Effect::Ask | Effect::Deny => "it is asked about instead of refused",
                };
                let init = if *may_init { "; `harness init` writes a policy for this project" } else { "" };
                format!("nothing may write in a read_only run: with `--sandbox workspace_write` {then}{init}")
            }
        }
    }
}

/// A rule as it stands in a policy file.
fn text_of(rule: &Rule) -> String {
    let pattern = toml_edit::Value::from(rule.pattern.as_str());
    let whole = match (rule.whole, rule.words) {
        (true, true) => ", whole = true, words = true",
        (true, false) => ", whole = true",
        (false, true) => ", words = true",
        (false, false) => "",
    };
    format!(
        "`[[rule]]` with act = \"exec\", effect = \"allow\", pattern = {}{whole}",
        pattern.to_string().trim()
    )
}

/// What would let a command pass that was asked about or refused, as far as anything should.
///
/// Nothing for a request that is wrong, for what a rule decided, for paths outside the project, and in the hardened profile,
/// in which no other layer can loosen anything.
pub fn of(gate: &Gate, request: &Request, decision: &Decision) -> Vec<Advice> {
    let by_rule = decision.ruling.as_ref().is_some_and(|ruling| ruling.rule.is_some());
    let about_it = match decision.source {
        Source::Policy | Source::ToolOverride => !by_rule,
        Source::Request | Source::PathPolicy | Source::Rule | Source::Approver => false,
    };
    let command = matches!(request.action, Action::Shell(_) | Action::Exec(_));
    let has = |codes: &[Code]| decision.findings.iter().any(|finding| codes.contains(&finding.code));
    if decision.effect == Effect::Allow
        || !about_it
        || !command
        || gate.settings().profile == Some(ProfileName::Hardened)
        || has(&[Code::Empty, Code::TooLarge, Code::ControlCharacter, Code::UnterminatedQuote])
        || has(&[Code::EmptySegment, Code::Syntax, Code::PathOutside, Code::PathParent, Code::PathUnknown])
    {
        return Vec::new();
    }
    if sequence_helps(gate, request) {
        return vec![Advice::Sequence];
    }
    let writes = decision.redirects_beyond.is_some()
        || has(&[Code::ProgramRefused, Code::FlagWrites, Code::OperandWrites, Code::TooManyOperands])
        || has(&[Code::RedirectWrites, Code::Redirect]);
    let read_only = gate.mode() == SandboxMode::ReadOnly;
    let mut advice = Vec::new();
    if decision.redirects_beyond.is_none() && !(writes && read_only) {
        advice.extend(rules_for(gate, request, decision).map(Advice::Rules));
    }
    if decision.source == Source::ToolOverride
        && read_only
        && let Some(then) = decided_in_workspace_write(gate, request).filter(|_| stays_inside(gate, decision))
    {
        advice.push(Advice::WorkspaceWrite { then, may_init: !gate.root().join(PROJECT_FILE).exists() });
    }
    advice
}

/// Why no rule is proposed for a command for which a reader may look for one.
pub(crate) fn why_no_rule(decision: &Decision) -> Option<String> {
    let runner = decision.commands.argvs.iter().filter_map(|argv| argv.first());
    if let Some(runner) = runner.into_iter().find(|program| remember::is_runner(program)) {
        return Some(format!("`{runner}` runs what it is told to, so that no rule is proposed for it"));
    }
    (decision.commands.incomplete || decision.commands.interprets)
        .then(|| "what it would run cannot be told from its text, so that no rule is proposed".to_owned())
}

/// A gate with settings that the command line would give, as far as locks below let it.
fn with_settings(gate: &Gate, change: impl FnOnce(&mut Settings)) -> Option<Gate> {
    let mut layer = Layer::new("command-line");
    change(&mut layer.settings);
    let policy = gate.policy().clone().with_layer(layer);
    let settings = policy.settings();
    // A caller that set its own settings beside the policy is not second-guessed.
    if gate.policy().settings() != *gate.settings() {
        return None;
    }
    Gate::new(gate.root(), policy, settings).ok()
}

fn sequence_helps(gate: &Gate, request: &Request) -> bool {
    gate.settings().grammar != Some(Grammar::Sequence)
        && with_settings(gate, |settings| settings.grammar = Some(Grammar::Sequence))
            .is_some_and(|gate| gate.decide(request).effect == Effect::Allow)
}

fn decided_in_workspace_write(gate: &Gate, request: &Request) -> Option<Effect> {
    let wider = with_settings(gate, |settings| settings.sandbox = Some(SandboxMode::WorkspaceWrite))?;
    Some(wider.decide(request).effect).filter(|&effect| effect != Effect::Deny)
}

/// Whether no word names a place outside the project: there, no sandbox mode but the widest lets anything be written.
fn stays_inside(gate: &Gate, decision: &Decision) -> bool {
    let leads_out = |word: &str| {
        let path = Path::new(word.rsplit('=').next().unwrap_or(word));
        word.starts_with('~')
            || (path.is_absolute() && !path.starts_with(gate.root()))
            || path.components().any(|part| part == Component::ParentDir)
    };
    !decision.commands.argvs.iter().flatten().any(|word| leads_out(word))
}

/// The rules that "always" would write, for every command of the line that none allows yet; only if all of them together
/// let it pass.
fn rules_for(gate: &Gate, request: &Request, decision: &Decision) -> Option<Vec<Rule>> {
    let now = Timestamp::from(SystemTime::now());
    let mut rules: Vec<Rule> = Vec::new();
    for argv in &decision.commands.argvs {
        let ruling = gate.policy().check_exec_at(argv, now);
        if ruling.rule.is_some() && ruling.effect == Effect::Allow {
            continue;
        }
        if argv.first().is_none_or(|program| program.contains('/') || learn::is_never_proposed(program)) {
            return None;
        }
        let mut single = decision.clone();
        single.commands.argvs = vec![argv.clone()];
        let rule = remember::propose(&single, gate.policy()).ok()?;
        if deletes(argv) {
            return None;
        }
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let layer = rules.iter().cloned().fold(Layer::new("advised"), Layer::with_rule);
    let passes = !rules.is_empty() && gate.clone().with_layer(layer).decide(request).effect == Effect::Allow;
    passes.then_some(rules)
}

/// Whether a subcommand throws away what cannot be had back.
fn deletes(argv: &[String]) -> bool {
    const DELETING: &[&str] =
        &["clean", "delete", "destroy", "filter-branch", "gc", "prune", "reset", "rm", "uninstall", "yank"];
    argv.iter().skip(1).any(|word| DELETING.contains(&word.as_str()))
}

/// The line that says why what the project's own file allows does not count, where that may be what a reader misses.
pub fn untrusted(session: &Session) -> Option<String> {
    let file = session.untrusted()?;
    let policy = session.gate().policy();
    let own = |layer: &Layer| layer.tighten_only && layer.origin.as_deref() == Some(file);
    let allows = policy.layers().iter().filter(|layer| own(layer)).any(|layer| {
        !layer.programs.is_empty() || layer.rules.iter().any(|rule| rule.effect == Effect::Allow)
    });
    let trusted =
        policy.layers().iter().fold(Policy::with_defaults(policy.base_defaults()), |policy, layer| {
            let tighten_only = layer.tighten_only && !own(layer);
            policy.with_layer(layer.clone().with_tighten_only(tighten_only))
        });
    let looser = !trusted.settings().looser_than(&policy.settings()).is_empty()
        || trusted.default_effect(Act::Exec).0 < policy.default_effect(Act::Exec).0;
    (allows || looser).then(|| {
        format!("`{PROJECT_FILE}` is not trusted, so its allows do not count: read it, then `harness trust`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cmdgate_policy::ApprovalPolicy;

    fn gate(change: impl FnOnce(&mut Settings), policy: Policy) -> (tempfile::TempDir, Gate) {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("notes.txt"), "x\n").unwrap();
        let mut layer = Layer::new("test");
        change(&mut layer.settings);
        let policy = policy.with_layer(layer);
        let settings = policy.settings();
        let gate = Gate::new(root.path(), policy, settings).unwrap();
        (root, gate)
    }

    fn workspace(settings: &mut Settings) {
        settings.sandbox = Some(SandboxMode::WorkspaceWrite);
    }

    fn advised(gate: &Gate, command: &str) -> Vec<Advice> {
        let request = Request::shell(command);
        of(gate, &request, &gate.decide(&request))
    }

    fn decided(gate: &Gate, command: &str, settings: impl FnOnce(&mut Settings), rules: &[Rule]) -> Effect {
        let mut layer = Layer::new("followed");
        layer.rules = rules.to_vec();
        settings(&mut layer.settings);
        let policy = gate.policy().clone().with_layer(layer);
        let settings = policy.settings();
        Gate::new(gate.root(), policy, settings).unwrap().decide(&Request::shell(command)).effect
    }

    #[test]
    fn an_advised_rule_is_the_one_that_always_would_write() {
        // contract: P7
        let (_root, gate) = gate(workspace, Policy::default().allow_exec("cargo build **"));
        for (command, patterns) in [
            ("git push", &["git push **"][..]),
            ("npm test -- --watch", &["npm test **"]),
            ("touch new.txt", &["touch new.txt"]),
            ("cargo build && npm test", &["npm test **"]),
        ] {
            let advice = advised(&gate, command);
            let [Advice::Rules(rules)] = advice.as_slice() else { panic!("{command}: {advice:?}") };
            let found: Vec<&str> = rules.iter().map(|rule| rule.pattern.as_str()).collect();
            assert_eq!(found, patterns, "{command}");
            assert_eq!(decided(&gate, command, |_| {}, rules), Effect::Allow, "{command}");
            assert_eq!(decided(&gate, command, |_| {}, &[]), Effect::Ask, "{command}");
        }
        assert!(advised(&gate, "touch new.txt")[0].line().contains("whole = true"));
    }

    #[test]
    fn no_rule_is_advised_for_what_a_rule_should_not_or_does_not_cover() {
        // contract: P7
        let (_root, gate) =
            gate(workspace, Policy::default().ask_exec("npm install **").deny_exec("npm publish **"));
        for command in [
            "rm -rf /",
            "rm notes.txt",
            "git clean -fdx",
            "git reset --hard",
            "cat /etc/passwd",
            "cat ../x",
            "PATH=. npm test",
            "npm test > /tmp/../etc/x",
            "npm test >> ~/.bashrc",
            "bash x.sh",
            "python3 x.py",
            "npm test $(",
            "npm test 'a",
            "",
            "npm install x",
            "npm publish",
            "./configure",
        ] {
            assert_eq!(advised(&gate, command), [], "{command}");
        }
        let strict = |settings: &mut Settings| {
            workspace(settings);
            settings.approval = Some(ApprovalPolicy::Strict);
        };
        assert_eq!(advised(&self::gate(strict, Policy::default()).1, "npm test"), []);
        let mut request = Request::shell("npm test");
        request.workdir = Some("no/such".into());
        assert_eq!(of(&gate, &request, &gate.decide(&request)), []);
        let hardened = cmdgate_policy::Profile::hardened();
        let (_root, hardened) = self::gate(|_| {}, hardened.policy().clone());
        for command in ["npm test", "cat notes.txt; ls", "touch x"] {
            assert_eq!(advised(&hardened, command), [], "{command}");
        }
    }

    #[test]
    fn the_grammar_and_the_sandbox_are_named_where_they_are_the_cause() {
        // contract: S13
        let (root, gate) = gate(|_| {}, Policy::default());
        let command = "cat notes.txt; ls";
        assert_eq!(advised(&gate, command), [Advice::Sequence]);
        let sequence = |settings: &mut Settings| settings.grammar = Some(Grammar::Sequence);
        assert_eq!(decided(&gate, command, sequence, &[]), Effect::Allow);

        let then = Effect::Ask;
        assert_eq!(advised(&gate, "touch x"), [Advice::WorkspaceWrite { then, may_init: true }]);
        assert_eq!(decided(&gate, "touch x", workspace, &[]), then);
        assert_eq!(advised(&gate, "touch /srv/x"), []);
        std::fs::write(root.path().join(PROJECT_FILE), "").unwrap();
        assert_eq!(advised(&gate, "touch x"), [Advice::WorkspaceWrite { then, may_init: false }]);
        let never = |settings: &mut Settings| settings.approval = Some(ApprovalPolicy::Never);
        let (_root, never) = self::gate(never, Policy::default());
        let then = Effect::Allow;
        assert_eq!(advised(&never, "touch x"), [Advice::WorkspaceWrite { then, may_init: true }]);
        assert_eq!(decided(&never, "touch x", workspace, &[]), then);

        // What a lock below holds is not advised.
        let mut locked = Layer::new("locked");
        locked.settings.sandbox = Some(SandboxMode::ReadOnly);
        locked.settings.grammar = Some(Grammar::Pipeline);
        locked.lock = true;
        let (_root, locked) = self::gate(|_| {}, Policy::default().with_layer(locked));
        assert_eq!(advised(&locked, "touch x"), []);
        assert!(!advised(&locked, command).contains(&Advice::Sequence));
    }
}
