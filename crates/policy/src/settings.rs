//! What a policy says besides its rules: sandbox, approvals, roots, limits.

use crate::act::{Act, Effect};
use crate::pattern::{Pattern, escape};
use crate::rule::Rule;
use crate::target::{last_component, normalise_path};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;

/// Declares a setting whose values are ordered from the loosest to the strictest.
macro_rules! ordered_setting {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// Every value, from the loosest to the strictest.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name used in policy files.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::act::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    crate::act::UnknownName {
                        given: text.to_owned(),
                        expected: concat!($($text, ", ",)+ "and nothing else"),
                    }
                })
            }
        }
    };
}

ordered_setting! {
    /// What the kernel lets a command do. Ordered by strictness.
    SandboxMode {
        /// No sandbox at all; an explicit choice, never a fallback.
        DangerFullAccess = "danger_full_access",
        /// Writes inside the project, except its protected paths; no network.
        WorkspaceWrite = "workspace_write",
        /// No writes, no network.
        ReadOnly = "read_only",
    }
}

ordered_setting! {
    /// When a person is asked about a tool that can destroy or reach out. Ordered by strictness.
    ApprovalPolicy {
        /// Never: such a tool is allowed where no rule says otherwise.
        Never = "never",
        /// When the command was not found harmless.
        OnRequest = "on_request",
        /// Always.
        Strict = "strict",
    }
}

ordered_setting! {
    /// Which command lines are read at all. Ordered by strictness.
    Grammar {
        /// Pipelines joined by `&&`, `||`, `;` and newlines, and harmless redirections.
        Sequence = "sequence",
        /// One pipeline.
        Pipeline = "pipeline",
        /// One command.
        Single = "single",
    }
}

ordered_setting! {
    /// A ready-made set of rules and settings. Ordered by strictness.
    ProfileName {
        /// The built-in layers.
        Default = "default",
        /// Listed programs only, in a read-only sandbox: [`crate::Profile::hardened`].
        Hardened = "hardened",
    }
}

/// What a layer sets besides rules. `None` leaves a thing as the layers below have it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Settings {
    /// The ready-made set to start from.
    pub profile: Option<ProfileName>,
    /// The sandbox.
    pub sandbox: Option<SandboxMode>,
    /// When a person is asked.
    pub approval: Option<ApprovalPolicy>,
    /// Which command lines are read.
    pub grammar: Option<Grammar>,
    /// A list of commands ends at the first that fails.
    pub stop_at_first_failure: Option<bool>,
    /// Outcomes carry advice where a dedicated tool would have done.
    pub hints: Option<bool>,
    /// Folders besides the project that commands may read. Absolute, `~/…`, or relative to the project.
    pub read_roots: Option<Vec<String>>,
    /// Folders besides the project that commands may write.
    pub write_roots: Option<Vec<String>>,
    /// Paths inside the project that stay read-only, as patterns for a path or any folder above it.
    pub protected_paths: Vec<String>,
    /// Entries of `protected_paths` that are taken out again, by their exact text.
    pub unprotected_paths: Option<Vec<String>>,
    /// Files that are neither read nor written, as patterns. Each is also two `deny` rules of its layer.
    pub secrets: Vec<String>,
    /// Folders that are neither read nor written, with all that is in them. Each is also two `deny` rules.
    pub blocked_paths: Vec<String>,
    /// Network hosts.
    pub network: Network,
    /// The environment of a command.
    pub environment: Environment,
    /// Time, output and kernel limits.
    pub limits: Limits,
    /// What the record of runs holds.
    pub trace: Trace,
}

/// Which network hosts may be reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Hosts that may be reached: `crates.io`, `*.github.com`. Each is also an `allow` rule of its layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_domains: Option<Vec<String>>,
    /// Hosts that may not, and all below them. Each is also a `deny` rule of its layer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_domains: Vec<String>,
}

/// The environment that a command is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Environment {
    /// Names of variables that are passed on besides the harmless ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<Vec<String>>,
}

/// What the record of runs holds, and how long. Whoever could have written a layer that may only tighten could hide what
/// it did, so nothing of this counts there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Trace {
    /// Regular expressions for texts that are taken out before anything is written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Runs that are older, in days, are removed; left out, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<NonZeroU64>,
    /// The oldest runs are removed when the record uses more bytes; left out, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<NonZeroU64>,
}

/// Bounds on one command. A bound left out is as the layers below have it; zero is not a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Time for one shell command that names none, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<NonZeroU64>,
    /// The most time that a shell command can name, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_timeout_ms: Option<NonZeroU64>,
    /// Time for one `exec`, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_timeout_ms: Option<NonZeroU64>,
    /// Characters kept of each output stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_chars: Option<NonZeroU64>,
    /// Lines kept of each output stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<NonZeroU64>,
    /// Processes and threads alive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<NonZeroU64>,
    /// Files open at once, for each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_files: Option<NonZeroU64>,
    /// The largest file that may be written, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<NonZeroU64>,
    /// Memory for each process, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<NonZeroU64>,
    /// Processor time for each process, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<NonZeroU64>,
}

impl Limits {
    /// Every bound with its name, so that what is done to one is done to all.
    pub(crate) fn each(&self) -> [(&'static str, Option<NonZeroU64>); 10] {
        let Self {
            timeout_ms,
            max_timeout_ms,
            exec_timeout_ms,
            output_chars,
            output_lines,
            processes,
            open_files,
            file_size_bytes,
            memory_bytes,
            cpu_seconds,
        } = *self;
        [
            ("limits.timeout_ms", timeout_ms),
            ("limits.max_timeout_ms", max_timeout_ms),
            ("limits.exec_timeout_ms", exec_timeout_ms),
            ("limits.output_chars", output_chars),
            ("limits.output_lines", output_lines),
            ("limits.processes", processes),
            ("limits.open_files", open_files),
            ("limits.file_size_bytes", file_size_bytes),
            ("limits.memory_bytes", memory_bytes),
            ("limits.cpu_seconds", cpu_seconds),
        ]
    }

    fn combine(
        &self,
        other: &Self,
        with: impl Fn(Option<NonZeroU64>, Option<NonZeroU64>) -> Option<NonZeroU64>,
    ) -> Self {
        Self {
            timeout_ms: with(self.timeout_ms, other.timeout_ms),
            max_timeout_ms: with(self.max_timeout_ms, other.max_timeout_ms),
            exec_timeout_ms: with(self.exec_timeout_ms, other.exec_timeout_ms),
            output_chars: with(self.output_chars, other.output_chars),
            output_lines: with(self.output_lines, other.output_lines),
            processes: with(self.processes, other.processes),
            open_files: with(self.open_files, other.open_files),
            file_size_bytes: with(self.file_size_bytes, other.file_size_bytes),
            memory_bytes: with(self.memory_bytes, other.memory_bytes),
            cpu_seconds: with(self.cpu_seconds, other.cpu_seconds),
        }
    }
}

impl Settings {
    /// The settings that hold where no layer says otherwise; every choice and bound that has a built-in
    /// value is set. They come from the same file as [`crate::Policy::default`].
    pub fn builtin() -> &'static Self {
        crate::builtin::settings()
    }

    /// These settings with another layer's above them: what that one sets, counts; lists are joined.
    #[must_use]
    pub fn overlay(&self, above: &Self) -> Self {
        Self {
            profile: above.profile.or(self.profile),
            sandbox: above.sandbox.or(self.sandbox),
            approval: above.approval.or(self.approval),
            grammar: above.grammar.or(self.grammar),
            stop_at_first_failure: above.stop_at_first_failure.or(self.stop_at_first_failure),
            hints: above.hints.or(self.hints),
            read_roots: join_optional(self.read_roots.as_deref(), above.read_roots.as_deref()),
            write_roots: join_optional(self.write_roots.as_deref(), above.write_roots.as_deref()),
            protected_paths: join(&self.protected_paths, &above.protected_paths),
            unprotected_paths: join_optional(
                self.unprotected_paths
                    .as_ref()
                    .map(|open| {
                        open.iter()
                            .filter(|path| !above.protected_paths.contains(path))
                            .cloned()
                            .collect::<Vec<_>>()
                    })
                    .as_deref(),
                above.unprotected_paths.as_deref(),
            ),
            secrets: join(&self.secrets, &above.secrets),
            blocked_paths: join(&self.blocked_paths, &above.blocked_paths),
            network: Network {
                allow_domains: join_optional(
                    self.network.allow_domains.as_deref(),
                    above.network.allow_domains.as_deref(),
                ),
                deny_domains: join(&self.network.deny_domains, &above.network.deny_domains),
            },
            environment: Environment {
                add: join_optional(self.environment.add.as_deref(), above.environment.add.as_deref()),
            },
            limits: self.limits.combine(&above.limits, |below, above| above.or(below)),
            trace: Trace {
                redact: join(&self.trace.redact, &above.trace.redact),
                keep_days: above.trace.keep_days.or(self.trace.keep_days),
                max_bytes: above.trace.max_bytes.or(self.trace.max_bytes),
            },
        }
    }

    /// These settings, made stricter by another layer wherever it is stricter, and in nothing looser.
    ///
    /// A stricter sandbox, approval, grammar or profile counts, a shorter time, a lower bound; lists of what
    /// is open shrink to what both name (a folder inside a folder is named by both), lists of what is closed
    /// are joined. Where these settings are silent, the built-in ones are what the other is measured by.
    ///
    /// ```
    /// use cmdgate_policy::{SandboxMode, Settings};
    /// let ours = Settings::builtin();
    /// let mut theirs = Settings::default();
    /// theirs.sandbox = Some(SandboxMode::DangerFullAccess);
    /// assert_eq!(ours.tighten(&theirs).sandbox, ours.sandbox);
    /// theirs.sandbox = Some(SandboxMode::ReadOnly);
    /// assert_eq!(ours.tighten(&theirs).sandbox, Some(SandboxMode::ReadOnly));
    /// ```
    #[must_use]
    pub fn tighten(&self, other: &Self) -> Self {
        let builtin = Self::builtin();
        Self {
            profile: stricter(self.profile, builtin.profile, other.profile),
            sandbox: stricter(self.sandbox, builtin.sandbox, other.sandbox),
            approval: stricter(self.approval, builtin.approval, other.approval),
            grammar: stricter(self.grammar, builtin.grammar, other.grammar),
            stop_at_first_failure: stricter(
                self.stop_at_first_failure,
                builtin.stop_at_first_failure,
                other.stop_at_first_failure,
            ),
            // Advice is neither strict nor loose.
            hints: other.hints.or(self.hints),
            read_roots: narrow(self.read_roots.as_deref(), other.read_roots.as_deref(), is_within),
            write_roots: narrow(self.write_roots.as_deref(), other.write_roots.as_deref(), is_within),
            protected_paths: join(&self.protected_paths, &other.protected_paths),
            unprotected_paths: self.unprotected_paths.as_ref().map(|open| {
                open.iter()
                    .filter(|path| !other.protected_paths.contains(path))
                    .filter(|path| other.unprotected_paths.as_ref().is_none_or(|both| both.contains(path)))
                    .cloned()
                    .collect()
            }),
            secrets: join(&self.secrets, &other.secrets),
            blocked_paths: join(&self.blocked_paths, &other.blocked_paths),
            network: Network {
                allow_domains: narrow(
                    self.network.allow_domains.as_deref(),
                    other.network.allow_domains.as_deref(),
                    is_domain_within,
                ),
                deny_domains: join(&self.network.deny_domains, &other.network.deny_domains),
            },
            environment: Environment {
                add: narrow(self.environment.add.as_deref(), other.environment.add.as_deref(), |a, b| a == b),
            },
            limits: {
                let floor = builtin.limits.combine(&self.limits, |builtin, own| own.or(builtin));
                let lower = floor.combine(&other.limits, |floor, other| match (floor, other) {
                    (Some(floor), Some(other)) if other >= floor => None,
                    (_, other) => other,
                });
                self.limits.combine(&lower, |own, lower| lower.or(own))
            },
            trace: self.trace.clone(),
        }
    }

    /// The names of the settings in which these are looser than others, in the order of a policy file;
    /// empty when they only tighten. Silence is read as the built-in value.
    pub fn looser_than(&self, base: &Self) -> Vec<&'static str> {
        let builtin = Self::builtin();
        let mut names = Vec::new();
        let mut note = |name, looser: bool| {
            if looser {
                names.push(name);
            }
        };
        note("profile", self.profile.or(builtin.profile) < base.profile.or(builtin.profile));
        note("sandbox", self.sandbox.or(builtin.sandbox) < base.sandbox.or(builtin.sandbox));
        note("approval", self.approval.or(builtin.approval) < base.approval.or(builtin.approval));
        note("grammar", self.grammar.or(builtin.grammar) < base.grammar.or(builtin.grammar));
        note(
            "stop_at_first_failure",
            self.stop_at_first_failure.or(builtin.stop_at_first_failure)
                < base.stop_at_first_failure.or(builtin.stop_at_first_failure),
        );
        note("read_roots", opens_more(self.read_roots.as_deref(), base.read_roots.as_deref(), is_within));
        note("write_roots", opens_more(self.write_roots.as_deref(), base.write_roots.as_deref(), is_within));
        note("protected_paths", base.protected().any(|path| !self.protected().any(|own| own == path)));
        note("blocked_paths", base.blocked_paths.iter().any(|path| !self.blocked_paths.contains(path)));
        note("secrets", base.secrets.iter().any(|path| !self.secrets.contains(path)));
        note(
            "network.allow_domains",
            opens_more(
                self.network.allow_domains.as_deref(),
                base.network.allow_domains.as_deref(),
                is_domain_within,
            ),
        );
        note(
            "network.deny_domains",
            base.network.deny_domains.iter().any(|domain| !self.network.deny_domains.contains(domain)),
        );
        note(
            "environment.add",
            opens_more(self.environment.add.as_deref(), base.environment.add.as_deref(), |a, b| a == b),
        );
        note("trace.redact", self.trace.redact.iter().any(|text| !base.trace.redact.contains(text)));
        let shorter = |own: Option<NonZeroU64>, base: Option<NonZeroU64>| {
            own.is_some_and(|own| base.is_none_or(|base| own < base))
        };
        note("trace.keep_days", shorter(self.trace.keep_days, base.trace.keep_days));
        note("trace.max_bytes", shorter(self.trace.max_bytes, base.trace.max_bytes));
        let (own, base, builtin) = (self.limits.each(), base.limits.each(), builtin.limits.each());
        for (((name, own), (_, base)), (_, builtin)) in own.into_iter().zip(base).zip(builtin) {
            match (own.or(builtin), base.or(builtin)) {
                (Some(own), Some(base)) => note(name, own > base),
                (None, Some(_)) => note(name, true),
                (_, None) => {}
            }
        }
        names
    }

    /// The protected paths that are not taken out again.
    pub fn protected(&self) -> impl Iterator<Item = &str> {
        let open = self.unprotected_paths.as_deref().unwrap_or_default();
        self.protected_paths.iter().filter(|path| !open.contains(path)).map(String::as_str)
    }

    /// The protected path that covers a path of the project, if one does: the path itself, its last
    /// component, or a folder above it matches, in any case.
    ///
    /// ```
    /// let settings = cmdgate_policy::Settings::builtin();
    /// assert_eq!(settings.protecting(".git/hooks/pre-commit"), Some(".git"));
    /// assert_eq!(settings.protecting("src/main.rs"), None);
    /// ```
    pub fn protecting(&self, path: &str) -> Option<&str> {
        let path = normalise_path(path);
        self.protected().find(|protected| {
            // What cannot be read as a pattern protects everything.
            let pattern = Pattern::lenient(*protected);
            pattern.problem().is_some() || {
                let globs = pattern.compile(Act::Write);
                let fits = |text: &str| {
                    let folded = crate::glob::fold(text);
                    globs
                        .iter()
                        .any(|compiled| compiled.glob.matches(text) || compiled.matches_folded(&folded))
                };
                ancestors(&path).any(|above| fits(above) || last_component(above).is_some_and(fits))
            }
        })
    }

    /// The blocked folder that covers a path, if one does, as the text alone tells: a symlink or a path
    /// relative to elsewhere is the caller's to resolve. Case does not matter.
    ///
    /// ```
    /// let mut settings = cmdgate_policy::Settings::default();
    /// settings.blocked_paths = vec!["/etc".to_owned()];
    /// assert_eq!(settings.blocking("/usr/../etc//passwd"), Some("/etc"));
    /// assert_eq!(settings.blocking("/etcetera"), None);
    /// ```
    pub fn blocking(&self, path: &str) -> Option<&str> {
        let path = crate::glob::fold(path);
        self.blocked_paths
            .iter()
            .find(|blocked| is_within(&path, &crate::glob::fold(blocked)))
            .map(String::as_str)
    }

    /// The rules that these settings imply in their layer.
    pub(crate) fn implied_rules(&self) -> Vec<Rule> {
        let rule = |act, effect, text: &str, reason: &str| {
            Rule::with_pattern(act, effect, Pattern::lenient(text)).because(reason)
        };
        let mut rules = Vec::new();
        for secret in &self.secrets {
            for act in [Act::Read, Act::Write] {
                rules.push(rule(act, Effect::Deny, secret, "listed under `secrets`"));
            }
        }
        for path in &self.blocked_paths {
            // `/etc/` is `/etc` and all in it; the root is all there is.
            let path = normalise_path(path);
            let folder = if path == "/" { "/*".to_owned() } else { format!("{}/", escape(&path)) };
            for act in [Act::Read, Act::Write] {
                rules.push(rule(act, Effect::Deny, &folder, "listed under `blocked_paths`"));
            }
        }
        for domain in &self.network.deny_domains {
            let reason = "listed under `network.deny_domains`";
            rules.push(rule(Act::Net, Effect::Deny, domain, reason));
            if !domain.starts_with('*') {
                rules.push(rule(Act::Net, Effect::Deny, &format!("*.{domain}"), reason));
            }
        }
        for domain in self.network.allow_domains.iter().flatten() {
            rules.push(rule(Act::Net, Effect::Allow, domain, "listed under `network.allow_domains`"));
        }
        rules
    }
}

fn stricter<T: Ord + Copy>(own: Option<T>, builtin: Option<T>, other: Option<T>) -> Option<T> {
    if other > own.or(builtin) { other } else { own }
}

fn join(below: &[String], above: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = below.to_vec();
    for item in above {
        if !joined.contains(item) {
            joined.push(item.clone());
        }
    }
    joined
}

fn join_optional(below: Option<&[String]>, above: Option<&[String]>) -> Option<Vec<String>> {
    match (below, above) {
        (None, None) => None,
        (below, above) => Some(join(below.unwrap_or_default(), above.unwrap_or_default())),
    }
}

/// What both lists open. Silence on one's own side opens nothing; silence on the other's changes nothing.
fn narrow(
    own: Option<&[String]>,
    other: Option<&[String]>,
    within: fn(&str, &str) -> bool,
) -> Option<Vec<String>> {
    let (own, other) = match (own, other) {
        (None, _) => return None,
        (Some(own), None) => return Some(own.to_vec()),
        (Some(own), Some(other)) => (own, other),
    };
    let kept = own.iter().filter(|item| other.iter().any(|outer| within(item, outer)));
    let inner = other.iter().filter(|item| own.iter().any(|outer| within(item, outer)));
    let inner: Vec<String> = inner.cloned().collect();
    Some(join(&kept.cloned().collect::<Vec<_>>(), &inner))
}

fn opens_more(own: Option<&[String]>, base: Option<&[String]>, within: fn(&str, &str) -> bool) -> bool {
    own.unwrap_or_default()
        .iter()
        .any(|item| !base.unwrap_or_default().iter().any(|outer| within(item, outer)))
}

/// Whether a folder is another one or lies in it, as the text alone tells.
fn is_within(path: &str, root: &str) -> bool {
    let (path, root) = (normalise_path(path), normalise_path(root));
    if path == root {
        return true;
    }
    let rest = if root == "/" {
        path.strip_prefix('/')
    } else {
        path.strip_prefix(&*root).and_then(|rest| rest.strip_prefix('/'))
    };
    // `..` after `..` leaves the folder again.
    rest.is_some_and(|rest| !rest.split('/').any(|part| part == ".."))
}

/// Whether a domain pattern names nothing that another does not.
fn is_domain_within(domain: &str, outer: &str) -> bool {
    domain == outer || Pattern::lenient(outer).covers(&Pattern::lenient(domain), Act::Net)
}

/// The path and the folders above it, the path first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(above, _)| above))
        .filter(|path| !path.is_empty())
}
