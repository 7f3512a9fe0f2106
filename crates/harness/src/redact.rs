//! Takes secrets out of text before it is written down.
//!
//! Two kinds are known: the values of this process's own environment variables whose names say that they are secret,
//! and texts that have the shape of a token. A shape that nobody listed is not found, so this is a second net: what
//! keeps secrets out of a command's reach is the sandbox and the environment's allowlist.

use regex_lite::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Values shorter than this are not looked for: they would also be found in words that are no secret.
const SHORTEST_VALUE: usize = 6;

/// Parts of a variable's name that make its value a secret.
const SECRET_NAMES: [&str; 12] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PRIVATE",
    "COOKIE",
    "AUTH",
    "DATABASE_URL",
    "_DSN",
];

/// One shape of secrets.
struct Shape {
    /// What stands in the place of a secret.
    name: &'static str,
    /// A text without any of these, in lower case, holds none: most texts are not searched any further.
    hints: &'static [&'static str],
    /// Neither does one without this.
    also: &'static str,
    /// Group 1 is kept, the rest of the match is taken out.
    pattern: LazyLock<Option<Regex>>,
}

impl Shape {
    /// Whether a text in lower case is worth the making of the pattern.
    fn may_be_in(&self, lower: &str) -> bool {
        lower.contains(self.also) && self.hints.iter().any(|hint| lower.contains(hint))
    }
}

macro_rules! shapes {
    ($($name:literal, $hints:expr, $also:literal, $pattern:literal;)+) => {
        static SHAPES: [Shape; 13] = [$(Shape {
            name: $name,
            hints: &$hints,
            also: $also,
            pattern: LazyLock::new(|| Regex::new($pattern).ok()),
        },)+];
    };
}

shapes! {
    "private key", ["private key"], "-----",
        r"()-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)";
    "AWS key", ["akia", "asia", "abia", "acca"], "",
        r"()\b(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b";
    "GitHub token", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], "_",
        r"()\b(gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})";
    "GitLab token", ["glpat-"], "",
        r"()\bglpat-[A-Za-z0-9_-]{16,}";
    "API key", ["sk-", "sk_", "rk_"], "",
        r"()\b(sk-[A-Za-z0-9_-]{16,}|[sr]k_(live|test)_[A-Za-z0-9]{16,})";
    "Slack token", ["xox", "xapp-"], "-",
        r"()\b(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})";
    "Google key", ["aiza", "ya29."], "",
        r"()\b(AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,})";
    "registry token", ["npm_", "pypi-", "cio", "hf_"], "",
        r"()\b(npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|cio[A-Za-z0-9]{32}|hf_[A-Za-z0-9]{30,})";
    "JWT", ["eyj"], ".",
        r"()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*";
    "password in a URL", ["://"], "@",
        r"(\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'\x22]*:)[^\s/@'\x22]+@";
    "authorization", ["authorization", "x-api-key", "private-token"], ":",
        r"((?i:\b(?:proxy-)?authorization:\s*(?:bearer|basic|token|digest)\s+|\b(?:x-api-key|private-token):\s*))[^\s'\x22]+";
    "option", ["pass", "token", "secret", "key", "credential"], "-",
        r"((?i:--?[a-z0-9-]*(?:password|passwd|passphrase|token|secret|api-?key|access-?key|credential)[a-z0-9-]*(?:=|\s+)['\x22]?))[^\s'\x22=-][^\s'\x22]*";
    "assignment", ["key", "token", "secret", "passw", "credential"], "=",
        r"((?i:\b[a-z0-9_]*(?:key|token|secret|password|passwd|credential)[a-z0-9_]*=['\x22]?))[^\s'\x22$;&|]{6,}";
}

/// The options whose value is the next word of an argument list.
static OPTION_ALONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^--?(?i:[a-z0-9-]*(?:password|passwd|passphrase|token|secret|api-?key|access-?key|credential))$",
    )
    .ok()
});

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` of `trace.redact` cannot be used: {problem}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Takes secrets out of text.
///
/// ```
/// use cmdgate_harness::redact::Redactor;
/// let redactor = Redactor::new([("DEPLOY_TOKEN", "hunter2hunter2"), ("LANG", "en_GB.UTF-8")]);
/// assert_eq!(redactor.text("echo hunter2hunter2 en_GB.UTF-8"), "echo [redacted: DEPLOY_TOKEN] en_GB.UTF-8");
/// assert_eq!(redactor.text("git clone https://u:p4ss@host/x"), "git clone https://u:[redacted: password in a URL]@host/x");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Name and value, the longest values first.
    values: Vec<(String, String)>,
    /// Patterns of the settings.
    custom: Vec<Regex>,
}

impl Redactor {
    /// For these variables; those whose names say nothing of a secret are left out.
    pub fn new(variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let mut values: Vec<(String, String)> = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(name, value)| value.trim().len() >= SHORTEST_VALUE && is_secret_name(name))
            .map(|(name, value)| (name, value.trim().to_owned()))
            .collect();
        values.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.cmp(b)));
        Self { values, custom: Vec::new() }
    }

    /// The same, taking out what matches these regular expressions as well.
    ///
    /// ```
    /// use cmdgate_harness::redact::Redactor;
    /// let redactor = Redactor::default().with_patterns(&[r"\bCUST-[0-9]{6}\b".to_owned()])?;
    /// assert_eq!(redactor.text("grep CUST-104711 log"), "grep [redacted: custom] log");
    /// assert!(Redactor::default().with_patterns(&["(".to_owned()]).is_err());
    /// # Ok::<(), cmdgate_harness::redact::PatternError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When one of them is no regular expression, or matches the empty text.
    pub fn with_patterns(mut self, patterns: &[String]) -> Result<Self, PatternError> {
        for pattern in patterns {
            let refused = |problem: String| PatternError { pattern: pattern.clone(), problem };
            let compiled = Regex::new(pattern).map_err(|error| refused(error.to_string()))?;
            if compiled.is_match("") {
                return Err(refused("it matches the empty text".to_owned()));
            }
            self.custom.push(compiled);
        }
        Ok(self)
    }

    /// For the environment of this process.
    pub fn from_environment() -> Self {
        Self::new(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut clean = Cow::Borrowed(text);
        for (name, value) in &self.values {
            if clean.contains(value.as_str()) {
                clean = Cow::Owned(clean.replace(value.as_str(), &format!("[redacted: {name}]")));
            }
        }
        for pattern in &self.custom {
            if pattern.is_match(&clean) {
                clean = Cow::Owned(pattern.replace_all(&clean, "[redacted: custom]").into_owned());
            }
        }
        let lower = clean.to_ascii_lowercase();
        for shape in SHAPES.iter().filter(|shape| shape.may_be_in(&lower)) {
            let Some(pattern) = &*shape.pattern else { continue };
            let replaced = pattern.replace_all(&clean, |found: &regex_lite::Captures<'_>| {
                let kept = found.get(1).map_or("", |kept| kept.as_str());
                let whole = found.get(0).map_or("", |whole| whole.as_str());
                if whole.get(kept.len()..).is_some_and(|rest| rest.starts_with("[redacted")) {
                    return whole.to_owned();
                }
                let end = if shape.name == "password in a URL" { "@" } else { "" };
                format!("{kept}[redacted: {}]{end}", shape.name)
            });
            if let Cow::Owned(replaced) = replaced {
                clean = Cow::Owned(replaced);
            }
        }
        clean
    }

    /// The value with all of its texts, and the names of its objects' members, without secrets. In a list, what
    /// follows an option such as `--password` goes as well.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text).into_owned()),
            Value::Array(items) => {
                let mut after_option = false;
                let items = items.into_iter().map(|item| {
                    let secret = after_option && item.as_str().is_some_and(|text| !text.starts_with('-'));
                    after_option = item.as_str().is_some_and(|text| {
                        OPTION_ALONE.as_ref().is_some_and(|pattern| pattern.is_match(text))
                    });
                    if secret { Value::from("[redacted: option]") } else { self.value(item) }
                });
                Value::Array(items.collect())
            }
            Value::Object(members) => {
                let members = members
                    .into_iter()
                    .map(|(name, value)| (self.text(&name).into_owned(), self.value(value)))
                    .collect::<Map<_, _>>();
                Value::Object(members)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // A path is where a secret lies, and no secret itself.
    let names_a_place = ["_SOCK", "_FILE", "_PATH", "_DIR", "_HOME"].iter().any(|end| name.ends_with(end));
    !names_a_place && SECRET_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn every_shape_compiles_and_is_found() {
        // contract: P12, S19
        assert!(SHAPES.iter().all(|shape| shape.pattern.is_some()) && OPTION_ALONE.is_some());
        // Put together here, so that no scanner of secrets takes the test for a leak.
        let long = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        let secrets = [
            format!("aws s3 ls {}{}", "AKIA", "IOSFODNN7EXAMPLE"),
            format!("curl -H x {}{long}", "ghp_"),
            format!("echo {}{long}", "github_pat_"),
            format!("echo {}{long}", "glpat-"),
            format!("export X={}{long}", "sk-proj-"),
            format!("echo {}{long}", "sk_live_"),
            format!("echo {}{long}", "xoxb-12-"),
            format!("echo {}{}", "AIza", long.get(..35).unwrap()),
            format!("echo {}{long}", "npm_"),
            format!("echo {}{long}", "pypi-"),
            format!("echo {}{long}.{long}.{long}", "eyJ"),
            format!("git clone https://user:{long}@example.com/x.git"),
            format!("psql postgres://app:{long}@db/x"),
            format!("curl -H 'Authorization: Bearer {long}' x"),
            format!("curl -H 'X-Api-Key: {long}' x"),
            format!("tool --password {long}"),
            format!("tool --api-key={long} x"),
            format!("tool --db-password='{long}'"),
            format!("AWS_SECRET_ACCESS_KEY={long} tool"),
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{long}\n-----END OPENSSH PRIVATE KEY-----\n"),
            format!("-----BEGIN RSA PRIVATE KEY-----\n{long}"),
        ];
        for secret in secrets {
            let clean = Redactor::default().text(&secret).into_owned();
            assert!(clean.contains("[redacted"), "{secret} -> {clean}");
            assert!(
                !clean.contains(long.get(4..30).unwrap()) && !clean.contains("IOSFODNN7"),
                "{secret} -> {clean}"
            );
        }
    }

    #[test]
    fn no_shape_is_missed_because_of_its_hints() {
        use proptest::strategy::{Strategy as _, ValueTree as _};
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for shape in &SHAPES {
            let pattern = shape.pattern.as_ref().unwrap();
            // What stands for no text cannot be made up.
            let made =
                proptest::string::string_regex(&pattern.as_str().replace(r"\b", "").replace(r"\z", ""));
            let made = made.unwrap();
            let mut matching = 0;
            for _ in 0..2000 {
                let text = made.new_tree(&mut runner).unwrap().current();
                matching += usize::from(pattern.is_match(&text));
                assert!(!pattern.is_match(&text) || shape.may_be_in(&text.to_ascii_lowercase()), "{text}");
            }
            assert!(matching > 20, "{}: {matching}", shape.name);
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "git log --oneline | head -5",
            "rg -n 'sk-' src",
            "cat monkey.txt keyboard.rs",
            "cargo test tokenizer -- --nocapture",
            "git show HEAD:src/token.rs",
            "curl https://example.com:8080/a@b",
            "echo \"$API_KEY\"",
            "sort -k 2 --key=3 a.txt",
            "KEY=$(cat x) y",
        ] {
            assert_eq!(Redactor::default().text(text), text);
        }
    }

    #[test]
    fn values_of_secret_variables_go_and_others_stay() {
        // contract: S19, P12
        let redactor = Redactor::new([
            ("OPENAI_API_KEY", "canary-value-1"),
            ("MY_PASSWORD", "short"),
            ("EDITOR", "canary-editor"),
            ("SSH_AUTH_SOCK", "/tmp/agent.sock"),
        ]);
        assert_eq!(
            redactor.text("echo canary-value-1 short canary-editor /tmp/agent.sock"),
            "echo [redacted: OPENAI_API_KEY] short canary-editor /tmp/agent.sock"
        );
        let value = redactor.value(json!({
            "argv": ["x", "--password", "hunter2", "--token", "-v", "canary-value-1x"],
            "canary-value-1": [{ "a": "canary-value-1" }],
            "n": 1,
        }));
        let text = value.to_string();
        assert!(!text.contains("hunter2") && !text.contains("canary-value-1"), "{text}");
    }

    proptest! {
        // contract: P12
        #[test]
        fn a_secret_value_is_never_left(before in ".{0,40}", secret in "[a-zA-Z0-9+/=._-]{8,40}", after in ".{0,40}") {
            prop_assume!(!"[redacted: A_TOKEN]".contains(&secret));
            let redactor = Redactor::new([("A_TOKEN", secret.as_str())]);
            let text = format!("{before}{secret}{after}");
            let clean = redactor.text(&text);
            prop_assert!(!clean.contains(&secret), "{clean}");
        }

        #[test]
        fn what_is_clean_stays_as_it_is(text in ".{0,200}") {
            let redactor = Redactor::default();
            let once = redactor.text(&text).into_owned();
            let twice = redactor.text(&once).into_owned();
            prop_assert_eq!(twice, once);
        }
    }
}
