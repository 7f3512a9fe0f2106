//! A small interpreter of the lexer's tree: which calls must bash make, and with which words?
//!
//! It gives up (`None`) on whatever depends on things it does not follow, such as files or endless loops.

use cmdgate_lexer::{
    Command, Compound, CompoundKind, Connector, Glob, List, Part, Pipeline, Redirect, RedirectKind, Script,
    Segment, Word, WordValue,
};
use std::collections::HashMap;

/// The calls of `script`, or `None` when they cannot be told. With `null_glob`, patterns that match nothing vanish.
pub(crate) fn interpret(script: &Script<'_>, source: &str, null_glob: bool) -> Option<Vec<Vec<String>>> {
    let mut shell = Shell { source, null_glob, calls: Vec::new(), steps: 0 };
    let mut state = State { variables: HashMap::from([("x".to_string(), "p q".to_string())]), status: 0 };
    shell.list(&script.list, &mut state)?;
    Some(shell.calls)
}

/// What a subshell gets a copy of.
#[derive(Clone)]
struct State {
    variables: HashMap<String, String>,
    status: u8,
}

struct Shell<'s> {
    source: &'s str,
    /// Whether a pattern without files vanishes.
    null_glob: bool,
    calls: Vec<Vec<String>>,
    steps: usize,
}

/// A piece of an expanded word.
enum Piece {
    /// Text that is never split.
    Fixed(String),
    /// The value of an unquoted expansion.
    Loose(String),
}

const BUILTINS: &str = "! . : [ alias bg bind break builtin caller cd command compgen complete compopt continue \
    declare dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local \
    logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap \
    true type typeset ulimit umask unalias unset wait";

impl Shell<'_> {
    fn list(&mut self, list: &List<'_>, state: &mut State) -> Option<()> {
        for item in &list.items {
            let runs = match item.connector {
                Connector::Then => true,
                Connector::And => state.status == 0,
                Connector::Or => state.status != 0,
            };
            if runs {
                self.pipeline(&item.pipeline, state)?;
            }
        }
        Some(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'_>, state: &mut State) -> Option<()> {
        // What `time` writes can end its own stage when nobody reads it any more.
        if pipeline.timed && self.source.contains('|') {
            return None;
        }
        match pipeline.stages.as_slice() {
            [only] => self.command(only, state)?,
            stages => {
                let mut status = 0;
                for stage in stages {
                    let mut copy = state.clone();
                    self.command(stage, &mut copy)?;
                    status = copy.status;
                }
                state.status = status;
            }
        }
        if pipeline.negated {
            state.status = u8::from(state.status == 0);
        }
        Some(())
    }

    fn command(&mut self, command: &Command<'_>, state: &mut State) -> Option<()> {
        match command {
            Command::Simple(segment) => self.segment(segment, state),
            Command::Compound(compound) => self.compound(compound, state),
        }
    }

    fn segment(&mut self, segment: &Segment<'_>, state: &mut State) -> Option<()> {
        self.steps += 1;
        if self.steps > 2_000 {
            return None;
        }
        state.status = if segment.words.is_empty() { 0 } else { state.status };
        let mut words = Vec::new();
        for word in &segment.words {
            words.extend(self.fields(word, state)?);
        }
        let input = self.redirects(&segment.redirects, state)?;
        // Whether one assignment before a command sees another is not followed.
        if segment.assignments.len() > 1 && !segment.words.is_empty() {
            return None;
        }
        let mut assigned = state.clone();
        for assignment in &segment.assignments {
            if !matches!(assignment.name, "x" | "y" | "z" | "a" | "b" | "c") {
                return None;
            }
            let value = self.joined(&assignment.value, &mut assigned)?;
            let slot = assigned.variables.entry(assignment.name.to_string()).or_default();
            if !assignment.append {
                slot.clear();
            }
            slot.push_str(&value);
        }
        let Some(name) = words.first() else {
            // What the status is after words that vanished, or after substitutions, is not followed.
            let literal = segment.assignments.iter().all(|assignment| assignment.value.literal().is_some());
            if !(segment.words.is_empty() && literal) && self.source.contains(['(', '`']) {
                return None;
            }
            *state = assigned;
            state.status = 0;
            return Some(());
        };
        let known = matches!(name.as_str(), "w0" | "w1" | "f0" | "r0");
        if !known
            && (name.is_empty()
                || name.contains('/')
                || name.starts_with("__")
                || name.starts_with('%')
                || BUILTINS.split_whitespace().any(|builtin| builtin == name))
        {
            return None;
        }
        state.status = match name.as_str() {
            "w0" | "w1" => 0,
            "f0" => 1,
            "r0" => {
                words.push(input?);
                0
            }
            _ => 127,
        };
        // The driver needs this character for itself.
        if words.iter().any(|word| word.contains('\u{1}')) {
            return None;
        }
        self.calls.push(words);
        Some(())
    }

    /// What `redirects` put on standard input, as far as that is known. `None` inside when it is not, outside when
    /// the redirections themselves cannot be followed.
    #[expect(clippy::option_option, reason = "two kinds of not knowing, handled apart by the one caller")]
    fn redirects(&mut self, redirects: &[Redirect<'_>], state: &mut State) -> Option<Option<String>> {
        let mut input = None;
        for redirect in redirects {
            if redirect.fd.is_some_and(|fd| fd > 2) {
                return None;
            }
            let to_input = redirect.fd.is_none_or(|fd| fd == 0);
            match &redirect.kind {
                RedirectKind::Read(word)
                | RedirectKind::Write { target: word, .. }
                | RedirectKind::WriteBoth { target: word, .. } => {
                    if word.literal() != Some("/dev/null") {
                        return None;
                    }
                    if to_input && matches!(redirect.kind, RedirectKind::Read(_)) {
                        input = Some(String::new());
                    } else if redirect.fd == Some(0) {
                        input = None;
                    }
                }
                RedirectKind::ReadWrite(_) => return None,
                RedirectKind::Duplicate(fd) => {
                    if *fd > 2 || redirect.fd == Some(0) {
                        return None;
                    }
                }
                RedirectKind::Close => return None,
                RedirectKind::HereDocument { body, .. } => {
                    let text = self.joined(body, state)?;
                    if to_input {
                        input = Some(text);
                    }
                }
                RedirectKind::HereString(word) => {
                    let text = self.joined(word, state)? + "\n";
                    if to_input {
                        input = Some(text);
                    }
                }
            }
        }
        Some(input)
    }

    fn compound(&mut self, compound: &Compound<'_>, state: &mut State) -> Option<()> {
        // What a command inside reads from a redirection of the whole is not followed.
        self.redirects(&compound.redirects, state)?;
        match &compound.kind {
            CompoundKind::Subshell(list) => {
                let mut copy = state.clone();
                self.list(list, &mut copy)?;
                state.status = copy.status;
            }
            CompoundKind::Group(list) => self.list(list, state)?,
            CompoundKind::For { name, words, body, .. } => {
                if !matches!(*name, "x" | "y" | "z" | "a" | "b" | "c") {
                    return None;
                }
                let mut values = Vec::new();
                for word in words {
                    values.extend(self.fields(word, state)?);
                }
                state.status = 0;
                for value in values {
                    state.variables.insert((*name).to_string(), value);
                    self.list(body, state)?;
                }
            }
            CompoundKind::While { until, condition, body } => {
                let mut status = 0;
                for round in 0.. {
                    self.list(condition, state)?;
                    if (state.status == 0) == *until {
                        break;
                    }
                    if round > 3 {
                        return None;
                    }
                    self.list(body, state)?;
                    status = state.status;
                }
                state.status = status;
            }
            CompoundKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.list(condition, state)?;
                    if state.status == 0 {
                        return self.list(body, state);
                    }
                }
                match otherwise {
                    Some(body) => self.list(body, state)?,
                    None => state.status = 0,
                }
            }
            CompoundKind::Case { word, arms } => {
                let value = self.joined(word, state)?;
                state.status = 0;
                for (patterns, body) in arms {
                    for pattern in patterns {
                        if self.matches(pattern, &value, state)? {
                            return body.as_ref().map_or(Some(()), |body| self.list(body, state));
                        }
                    }
                }
            }
            CompoundKind::Arithmetic(text) => {
                let number: u64 = text.trim().parse().ok()?;
                state.status = u8::from(number == 0);
            }
            CompoundKind::Conditional(words) => state.status = u8::from(!self.test(words, state)?),
        }
        Some(())
    }

    /// A test without parentheses, of words, `-n`, `-z`, `==` and `!=`; `&&` binds tighter than `||`.
    fn test(&mut self, words: &[Word<'_>], state: &mut State) -> Option<bool> {
        let source = self.source;
        let raw = |word: &Word<'_>| word.span.of(source);
        for (operator, decisive) in [("||", true), ("&&", false)] {
            if let Some(at) = words.iter().position(|word| raw(word) == operator) {
                if self.test(&words[..at], state)? == decisive {
                    return Some(decisive);
                }
                return self.test(&words[at + 1..], state);
            }
        }
        match words {
            [not, rest @ ..] if raw(not) == "!" => self.test(rest, state).map(|result| !result),
            [word] => Some(!self.joined(word, state)?.is_empty()),
            [operator, word] if raw(operator) == "-n" => Some(!self.joined(word, state)?.is_empty()),
            [operator, word] if raw(operator) == "-z" => Some(self.joined(word, state)?.is_empty()),
            [left, operator, right] if matches!(raw(operator), "=" | "==" | "!=") => {
                let equal = raw(operator) != "!=";
                let value = self.joined(left, state)?;
                Some(self.matches(right, &value, state)? == equal)
            }
            [left, operator, right] if raw(operator) == "=~" => {
                let pattern =
                    right.literal().filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
                Some(self.joined(left, state)?.contains(pattern))
            }
            [left, operator, right] => {
                let (one, two) = (left.literal()?, right.literal()?);
                let numbers = one.parse::<u8>().ok().zip(two.parse::<u8>().ok());
                match raw(operator) {
                    "<" => Some(one < two),
                    "-eq" => numbers.map(|(one, two)| one == two),
                    "-lt" => numbers.map(|(one, two)| one < two),
                    "-ge" => numbers.map(|(one, two)| one >= two),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn matches(&mut self, pattern: &Word<'_>, value: &str, state: &mut State) -> Option<bool> {
        match &pattern.value {
            WordValue::Literal(text) => Some(text == value),
            WordValue::Composite(parts) => {
                let mut shape = Vec::new();
                for part in parts {
                    match part {
                        Part::Text(text) => shape.extend(text.chars().map(Some)),
                        Part::Glob(Glob::Any) => shape.push(None),
                        Part::Variable { quoted: true, .. } => {
                            let pieces = self.part(part, state)?;
                            let [Piece::Fixed(text)] = pieces.as_slice() else { return None };
                            shape.extend(text.chars().map(Some));
                        }
                        Part::Glob(Glob::One | Glob::Class(_))
                        | Part::Tilde(_)
                        | Part::Variable { .. }
                        | Part::Substitution { .. }
                        | Part::Arithmetic { .. } => return None,
                    }
                }
                Some(matches(&shape, &value.chars().collect::<Vec<_>>()))
            }
        }
    }

    /// The words that `word` becomes where it is split.
    fn fields(&mut self, word: &Word<'_>, state: &mut State) -> Option<Vec<String>> {
        let parts = match &word.value {
            WordValue::Literal(text) => return Some(vec![text.to_string()]),
            WordValue::Composite(parts) => parts,
        };
        if parts.iter().any(|part| matches!(part, Part::Glob(_))) {
            if self.null_glob {
                return None;
            }
            // In an empty folder a pattern stays what it is.
            let raw = word.span.of(self.source);
            if raw.contains(['/', '.', '$', '`', '\\', '\'', '"', '{', '~']) {
                return None;
            }
        }
        let mut fields = Vec::new();
        let mut current: Option<String> = None;
        for piece in self.pieces(parts, word.span.of(self.source), state)? {
            match piece {
                Piece::Fixed(text) => current.get_or_insert_default().push_str(&text),
                Piece::Loose(text) => {
                    for char in text.chars() {
                        if matches!(char, ' ' | '\t' | '\n') {
                            fields.extend(current.take());
                        } else if matches!(char, '*' | '?' | '[' | '\\') {
                            return None;
                        } else {
                            current.get_or_insert_default().push(char);
                        }
                    }
                }
            }
        }
        fields.extend(current);
        // A dollar sign that starts nothing keeps bash from splitting the word; the tree says only that it may.
        let dollar = |part: &Part<'_>| matches!(part, Part::Text(text) if text.contains('$'));
        if fields.len() > 1 && parts.iter().any(dollar) {
            return None;
        }
        // The tree does not keep an empty pair of quotes beside an expansion, which keeps the word alive.
        if fields.is_empty() && word.span.of(self.source).contains(['\'', '"']) {
            return None;
        }
        Some(fields)
    }

    /// The text that `word` becomes where it is not split.
    fn joined(&mut self, word: &Word<'_>, state: &mut State) -> Option<String> {
        match &word.value {
            WordValue::Literal(text) => Some(text.to_string()),
            WordValue::Composite(parts) => {
                let pieces = self.pieces(parts, word.span.of(self.source), state)?;
                Some(pieces.into_iter().map(|(Piece::Fixed(text) | Piece::Loose(text))| text).collect())
            }
        }
    }

    fn pieces(&mut self, parts: &[Part<'_>], raw: &str, state: &mut State) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if let Part::Tilde(user) = part {
                // Quotes behind a tilde keep it from meaning anything; the tree says only that it may.
                if raw.contains(['\'', '"', '\\']) {
                    return None;
                }
                let whole = match parts.get(index + 1) {
                    None => true,
                    Some(Part::Text(text)) => text.starts_with('/'),
                    Some(_) => false,
                };
                if index > 0 || !user.is_empty() || !whole {
                    return None;
                }
                pieces.push(Piece::Fixed("/hh".into()));
                continue;
            }
            pieces.extend(self.part(part, state)?);
        }
        Some(pieces)
    }

    fn part(&mut self, part: &Part<'_>, state: &mut State) -> Option<Vec<Piece>> {
        let (text, quoted) = match part {
            Part::Text(text) => (text.to_string(), true),
            Part::Glob(Glob::Any) => ("*".into(), true),
            Part::Glob(Glob::One) => ("?".into(), true),
            Part::Glob(Glob::Class(text)) => ((*text).to_string(), true),
            Part::Tilde(_) => return None,
            Part::Variable { name, quoted } => {
                let value = match *name {
                    "x" | "y" | "z" | "a" | "b" | "c" | "ab" | "xa" => state.variables.get(*name).cloned(),
                    "1" | "2" => None,
                    "#" => Some("0".into()),
                    _ => return None,
                };
                (value.unwrap_or_default(), *quoted)
            }
            // The commands inside run beside the others.
            Part::Substitution { pipe: true, .. } => return None,
            Part::Substitution { list, quoted, pipe: false } => {
                let mut copy = state.clone();
                self.list(list, &mut copy)?;
                state.status = copy.status;
                (String::new(), *quoted)
            }
            Part::Arithmetic { text, quoted } => {
                let number: u64 = text.trim().parse().ok()?;
                if text.trim().len() > 1 && text.trim().starts_with('0') {
                    return None;
                }
                (number.to_string(), *quoted)
            }
        };
        Some(vec![if quoted { Piece::Fixed(text) } else { Piece::Loose(text) }])
    }
}

/// Whether `text` has the shape: characters, and `None` for any number of them.
fn matches(shape: &[Option<char>], text: &[char]) -> bool {
    match shape.split_first() {
        None => text.is_empty(),
        Some((None, rest)) => (0..=text.len()).any(|skip| matches(rest, &text[skip..])),
        Some((Some(char), rest)) => {
            text.split_first().is_some_and(|(first, text)| first == char && matches(rest, text))
        }
    }
}
