//! Loops: over words, and over the lines of an input that ends.

use super::{Inherited, Judge, Variable, is_harmless_name};
use crate::arg::{Arg, Shape};
use crate::condition::Condition;
use crate::finding::Code;
use crate::spec::Prints;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use cmdgate_lexer::{Command, CompoundKind, Connector, List, Part, Pipeline, Segment, Span, Word};

/// `while read -r NAME …`: a line of the input in each round, until there is none.
pub(super) struct ReadLoop<'w> {
    names: Vec<(&'w str, Span)>,
    /// Whether a round gets one whole line, but for blanks at its ends.
    whole_lines: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn for_loop(
        &mut self,
        name: &'a str,
        name_span: Span,
        words: &[Word<'a>],
        body: &List<'a>,
        inherited: Inherited,
    ) {
        if !is_harmless_name(name) {
            let why = "a variable of this name may mean something to the shell or a program";
            self.report(Code::Assignment, name_span, why, None);
        }
        if self.is_tracked(name) {
            self.report(Code::Assignment, name_span, "is set more than once, which is not followed", None);
        }
        let mut values = Vec::with_capacity(words.len());
        for word in words {
            self.word(word, &mut values);
        }
        for value in &mut values {
            if value.is_printed_names() {
                value.text = Cow::Borrowed("*");
            }
            if let Shape::Pattern { many, .. } = &mut value.shape {
                *many = false;
            } else if let Shape::Opaque { splits } = &mut value.shape {
                // Each of the words it splits into becomes the value in its turn, and none is known.
                *splits = false;
                value.text = Cow::Borrowed("");
            }
        }
        let Some(first) = values.first().cloned() else {
            return;
        };
        let span = name_span;
        let known = self.variables.len();
        self.variables.push(Variable { name, current: first, values, chosen: false });
        self.rounds(body, inherited, span);
        self.variables.truncate(known);
    }

    /// A loop that ends with its input. What a line holds is not known, unless names of files come in.
    pub(super) fn read_loop(
        &mut self,
        input: &ReadLoop<'a>,
        body: &List<'a>,
        inherited: Inherited,
        span: Span,
    ) {
        if !inherited.input_ends {
            let why = "waits for standard input, which nothing feeds";
            self.report(Code::WaitsOnStdin, span, why, None);
        }
        let names_come_in = inherited.upstream == Prints::PathsInside && input.whole_lines;
        let known = self.variables.len();
        for (name, name_span) in &input.names {
            if !is_harmless_name(name) {
                let why = "a variable of this name may mean something to the shell or a program";
                self.report(Code::Assignment, *name_span, why, None);
            }
            if self.is_tracked(name) {
                self.report(
                    Code::Assignment,
                    *name_span,
                    "is set more than once, which is not followed",
                    None,
                );
            }
            let value = if names_come_in {
                self.need_one(Condition::ReadsConfined);
                Arg {
                    text: Cow::Borrowed("*"),
                    span: *name_span,
                    shape: Shape::Pattern { prefix: 0, many: false },
                }
            } else {
                Arg { text: Cow::Borrowed(""), span: *name_span, shape: Shape::Opaque { splits: false } }
            };
            self.variables.push(Variable { name, current: value, values: Vec::new(), chosen: false });
        }
        // The lines are those of the loop, not of the commands in it.
        let inherited = Inherited { upstream: Prints::Anything, ..inherited };
        self.rounds(body, inherited, span);
        self.variables.truncate(known);
    }

    /// The body of a loop, which may run any number of times: a second round starts where the first one ended.
    fn rounds(&mut self, body: &List<'a>, inherited: Inherited, span: Span) {
        self.perhaps(span, |judge| {
            let before = judge.places;
            judge.round(body, inherited);
            let moved = judge.places;
            judge.join_places(before, span);
            if moved != before {
                judge.round(body, inherited);
                if judge.places.iter().any(|id| !moved.iter().chain(before.iter()).any(|known| known == id)) {
                    judge.report(Code::LostTrack, span, "changes directory in every round of the loop", None);
                }
            }
        });
    }

    fn round(&mut self, body: &List<'a>, inherited: Inherited) {
        self.rounds_begin_in.push(self.places);
        self.list(body, inherited);
        self.rounds_begin_in.pop();
    }

    /// `break` and `continue` leave out the rest of a round, which changes nothing as long as the shell is where the
    /// round began. True when that is so.
    pub(super) fn may_leave_round(&mut self, name: Span, args: &[Arg<'a>]) -> bool {
        let Some(begin) = self.rounds_begin_in.last().copied().filter(|_| args.is_empty()) else {
            return false;
        };
        if begin != self.places {
            let why = "leaves out the rest of the loop in another directory than it began in";
            self.report(Code::LostTrack, name, why, None);
        }
        true
    }
}

/// Whether a `while` or `until` loop with this condition never runs its body.
pub(super) fn never_repeats(condition: &List<'_>, until: bool) -> bool {
    let never = if until { "true" } else { "false" };
    match condition.items.as_slice() {
        [only] if !only.pipeline.negated => match only.pipeline.stages.as_slice() {
            [Command::Simple(segment)] => {
                segment.assignments.is_empty()
                    && matches!(segment.words.as_slice(), [word] if word.literal() == Some(never))
            }
            _ => false,
        },
        _ => false,
    }
}

/// The variables that `read` sets where it is the whole condition of a loop, so that the loop ends with its input. After it
/// may stand `|| [ -n "$NAME" ]`, for a last line without its end.
pub(super) fn reads_lines<'a>(condition: &List<'a>) -> Option<ReadLoop<'a>> {
    let (first, rest) = condition.items.split_first()?;
    let Command::Simple(segment) = only_stage(&first.pipeline)? else {
        return None;
    };
    let input = read_command(segment)?;
    match (rest, input.names.as_slice()) {
        ([], _) => Some(input),
        ([more], [(name, _)]) if more.connector == Connector::Or && tests_for_text(&more.pipeline, name) => {
            Some(input)
        }
        _ => None,
    }
}

fn only_stage<'p, 'a>(pipeline: &'p Pipeline<'a>) -> Option<&'p Command<'a>> {
    match pipeline.stages.as_slice() {
        [stage] if !pipeline.negated && !pipeline.timed => Some(stage),
        _ => None,
    }
}

fn read_command<'a>(segment: &Segment<'a>) -> Option<ReadLoop<'a>> {
    // A redirection here would begin the same input anew in each round.
    if !segment.redirects.is_empty() {
        return None;
    }
    let mut whole_lines = true;
    for assignment in &segment.assignments {
        if assignment.name != "IFS" || assignment.append {
            return None;
        }
        whole_lines &= assignment.value.literal()?.is_empty();
    }
    let mut words = segment.words.iter();
    if words.next()?.literal() != Some("read") {
        return None;
    }
    let mut names = Vec::new();
    while let Some(word) = words.next() {
        // A name that is not its own source text would have to be kept somewhere.
        let text = borrowed(word)?;
        match text {
            "-r" if names.is_empty() => {}
            "-d" | "-rd" if names.is_empty() => whole_lines &= words.next()?.literal()?.is_empty(),
            _ if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !names.iter().any(|(known, _)| *known == text) =>
            {
                names.push((text, word.span));
            }
            _ => return None,
        }
    }
    whole_lines &= names.len() == 1;
    (!names.is_empty()).then_some(ReadLoop { names, whole_lines })
}

fn borrowed<'a>(word: &Word<'a>) -> Option<&'a str> {
    match &word.value {
        cmdgate_lexer::WordValue::Literal(Cow::Borrowed(text)) => Some(text),
        cmdgate_lexer::WordValue::Literal(Cow::Owned(_)) | cmdgate_lexer::WordValue::Composite(_) => None,
    }
}

/// `[ -n "$NAME" ]` or `[[ -n $NAME ]]`.
fn tests_for_text(pipeline: &Pipeline<'_>, name: &str) -> bool {
    let is_name = |word: &Word<'_>, must_be_quoted: bool| {
        matches!(word.parts(),
        [Part::Variable { name: used, quoted }] if *used == name && (*quoted || !must_be_quoted))
    };
    match only_stage(pipeline) {
        Some(Command::Simple(segment)) if segment.assignments.is_empty() && segment.redirects.is_empty() => {
            matches!(segment.words.as_slice(), [bracket, flag, word, close]
                if bracket.literal() == Some("[") && flag.literal() == Some("-n")
                    && close.literal() == Some("]") && is_name(word, true))
        }
        Some(Command::Compound(compound)) if compound.redirects.is_empty() => {
            matches!(&compound.kind, CompoundKind::Conditional(words)
                if matches!(words.as_slice(), [flag, word] if flag.literal() == Some("-n") && is_name(word, false)))
        }
        Some(Command::Simple(_) | Command::Compound(_)) | None => false,
    }
}
