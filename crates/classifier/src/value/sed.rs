//! sed scripts: a closed grammar that can neither write, read other files, run commands, nor loop for ever.
//!
//! The grammar is that of GNU sed 4.9 (`sed/compile.c`), narrowed wherever BSD or busybox sed would split the script
//! differently: what one of them takes for the text of a regular expression, another could take for a command.

use crate::finding::Code;
use crate::spec::ScriptIssue;
use alloc::vec;
use alloc::vec::Vec;

/// Checks a script: all `-e` parts joined by newlines, or the first operand.
pub(crate) fn check(script: &str) -> Result<(), ScriptIssue> {
    let mut parser = Parser {
        text: script.as_bytes(),
        at: 0,
        commands: Vec::new(),
        blocks: Vec::new(),
        labels: Vec::new(),
        label_on_line: false,
        adds_lines: None,
        deletes_first: false,
    };
    parser.script()?;
    parser.ends()
}

/// The digits of a number: BSD sed takes what follows its `-l` as the script.
pub(crate) fn number(text: &str) -> Result<(), ScriptIssue> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    Err(ScriptIssue { code: Code::BadValue, ..ScriptIssue::new(0, text.len(), "is not a plain number") })
}

/// When a command is executed, as far as its address tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    OnLast,
    NotOnLast,
    Perhaps,
}

/// What matters of a command for the question whether the script ends.
#[derive(Debug, Clone, Copy)]
struct Step<'s> {
    command: u8,
    when: When,
    /// The label of a jump; empty for the end of the script.
    label: &'s [u8],
    /// Where the label stands.
    at: usize,
    /// For `{`: the step after its `}`.
    beyond: usize,
}

struct Parser<'s> {
    text: &'s [u8],
    at: usize,
    commands: Vec<Step<'s>>,
    /// Open `{`, as indices into `commands`.
    blocks: Vec<usize>,
    labels: Vec<(&'s [u8], usize)>,
    /// A label or jump stands on this line: BSD sed takes the rest of the line for its name.
    label_on_line: bool,
    /// Where a command may make lines out of what was one, so that `D` may never be done.
    adds_lines: Option<usize>,
    deletes_first: bool,
}

impl<'s> Parser<'s> {
    fn issue<T>(&self, start: usize, why: &'static str) -> Result<T, ScriptIssue> {
        let end = self.at.max(start + 1).min(self.text.len());
        Err(ScriptIssue::new(start.min(end), end, why))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn digits(&mut self) -> bool {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > from
    }

    fn script(&mut self) -> Result<(), ScriptIssue> {
        loop {
            while let Some(byte @ (b' ' | b'\t' | b'\n' | b';')) = self.peek() {
                self.at += 1;
                self.label_on_line &= byte != b'\n';
            }
            if self.peek().is_none() {
                break;
            }
            self.command()?;
        }
        if let Some(open) = self.blocks.last().and_then(|at| self.commands.get(*at)) {
            return self.issue(open.at, "opens a block that is never closed");
        }
        Ok(())
    }

    fn command(&mut self) -> Result<(), ScriptIssue> {
        let mut when = self.addresses()?;
        self.blanks();
        if self.peek() == Some(b'!') {
            self.at += 1;
            self.blanks();
            when = match when {
                When::OnLast => When::NotOnLast,
                // `!` without an address never executes.
                When::Always | When::NotOnLast | When::Perhaps => When::Perhaps,
            };
        }
        let start = self.at;
        let Some(command) = self.next() else {
            return self.issue(start.saturating_sub(1), "an address without a command");
        };
        let mut step = Step { command, when, label: &[], at: start, beyond: 0 };
        match command {
            b'#' => {
                let before = start.checked_sub(1).and_then(|before| self.text.get(before));
                if self.label_on_line && !matches!(before, Some(b' ' | b'\t' | b';' | b'\n')) {
                    // busybox sed: `:x# w out` is the label `x#`, and then the command `w out`.
                    return self.issue(start, "is a comment, or part of a label and commands after it");
                }
                while self.peek().is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
                return Ok(());
            }
            b'{' => {
                self.blocks.push(self.commands.len());
                self.commands.push(step);
                return Ok(());
            }
            b'}' => {
                let Some(open) = self.blocks.pop() else {
                    return self.issue(start, "closes a block that was never opened");
                };
                let beyond = self.commands.len();
                if let Some(opened) = self.commands.get_mut(open) {
                    opened.beyond = beyond;
                }
                return self.end_of_command();
            }
            b'=' | b'd' | b'F' | b'h' | b'H' | b'n' | b'N' | b'p' | b'P' | b'z' => self.end_of_command()?,
            b'g' | b'G' | b'x' => {
                self.adds_lines.get_or_insert(start);
                self.end_of_command()?;
            }
            b'D' => {
                self.deletes_first = true;
                self.end_of_command()?;
            }
            b'q' | b'Q' | b'l' => {
                self.blanks();
                self.digits();
                self.end_of_command()?;
            }
            b'a' | b'i' | b'c' => self.text_block(start)?,
            b':' | b'b' | b't' | b'T' => {
                self.blanks();
                step.at = self.at;
                step.label = self.label();
                self.end_of_command()?;
                if self.text.get(self.at.wrapping_sub(1)) != Some(&b'\n') {
                    self.label_on_line = true;
                }
                if command == b':' {
                    if step.label.is_empty() {
                        return self.issue(start, "a label without a name");
                    }
                    if self.labels.iter().any(|(known, _)| *known == step.label) {
                        return self.issue(start, "a label that stands there twice");
                    }
                    self.labels.push((step.label, self.commands.len()));
                    return Ok(());
                }
            }
            b'v' => {
                self.blanks();
                while self.peek().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.') {
                    self.at += 1;
                }
                self.end_of_command()?;
                return Ok(());
            }
            b's' => self.substitute(start)?,
            b'y' => self.translate(start)?,
            b'w' | b'W' => return self.issue(start, "writes into a file"),
            b'r' | b'R' => return self.issue(start, "reads another file"),
            b'e' => return self.issue(start, "runs a command"),
            _ => return self.issue(start, "is not one of the commands that only read and print"),
        }
        self.commands.push(step);
        Ok(())
    }

    /// `}`, `#`, `;`, a newline or the end. The first two stay.
    fn end_of_command(&mut self) -> Result<(), ScriptIssue> {
        self.blanks();
        match self.peek() {
            None | Some(b'}' | b'#') => Ok(()),
            Some(byte @ (b';' | b'\n')) => {
                self.at += 1;
                self.label_on_line &= byte != b'\n';
                Ok(())
            }
            Some(_) => self.issue(self.at, "follows a command that takes nothing more"),
        }
    }

    fn addresses(&mut self) -> Result<When, ScriptIssue> {
        let first = self.at;
        let Some(when) = self.address(false)? else {
            return Ok(When::Always);
        };
        self.blanks();
        if self.peek() != Some(b',') {
            return Ok(when);
        }
        self.at += 1;
        self.blanks();
        match self.address(true)? {
            Some(_) => Ok(When::Perhaps),
            None => self.issue(first, "is a range without its end"),
        }
    }

    fn address(&mut self, second: bool) -> Result<Option<When>, ScriptIssue> {
        match self.peek() {
            Some(b'$') => {
                self.at += 1;
                Ok(Some(When::OnLast))
            }
            Some(b'0'..=b'9') => {
                self.digits();
                self.blanks();
                if self.peek() == Some(b'~') {
                    self.at += 1;
                    self.blanks();
                    self.digits();
                }
                Ok(Some(When::Perhaps))
            }
            Some(b'+' | b'~') if second => {
                self.at += 1;
                self.blanks();
                self.digits();
                Ok(Some(When::Perhaps))
            }
            Some(b'/') => {
                self.at += 1;
                self.address_regex(b'/')?;
                Ok(Some(When::Perhaps))
            }
            Some(b'\\') => {
                self.at += 1;
                let delimiter = self.delimiter()?;
                self.address_regex(delimiter)?;
                Ok(Some(When::Perhaps))
            }
            Some(_) | None => Ok(None),
        }
    }

    fn address_regex(&mut self, delimiter: u8) -> Result<(), ScriptIssue> {
        self.regex(delimiter)?;
        self.blanks();
        while matches!(self.peek(), Some(b'I' | b'M' | b' ' | b'\t')) {
            self.at += 1;
        }
        Ok(())
    }

    /// The delimiter of a regular expression: ASCII punctuation, except what the parsers treat differently.
    fn delimiter(&mut self) -> Result<u8, ScriptIssue> {
        match self.next() {
            Some(byte) if byte.is_ascii_punctuation() && !matches!(byte, b'\\' | b'[' | b']') => Ok(byte),
            Some(_) | None => {
                self.issue(self.at.saturating_sub(1), "is not a delimiter that every sed reads alike")
            }
        }
    }

    /// A regular expression up to its delimiter. The delimiter inside brackets does not end it; where brackets end is
    /// read in three ways (GNU, BSD, busybox), which must agree.
    fn regex(&mut self, delimiter: u8) -> Result<(), ScriptIssue> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or(&[]);
        let ends = [Brackets::Gnu, Brackets::Bsd, Brackets::Busybox].map(|style| style.end(rest, delimiter));
        let [Some(gnu), Some(bsd), Some(busybox)] = ends else {
            self.at = self.text.len();
            return self.issue(start, "is a regular expression without its end");
        };
        if gnu != bsd || gnu != busybox {
            self.at = self.text.len();
            return self.issue(start, "is a regular expression whose end depends on which sed reads it");
        }
        self.at = start + gnu + 1;
        Ok(())
    }

    /// Replacement text or a part of `y`, up to its delimiter. Returns how many references to matched text there are,
    /// and whether it may hold a newline.
    fn replacement(&mut self, delimiter: u8, start: usize, lines: bool) -> Result<(u32, bool), ScriptIssue> {
        let mut references = 0;
        let mut newline = false;
        loop {
            match self.next() {
                None | Some(b'\n') => return self.issue(start, "is a command without its last delimiter"),
                Some(b'\\') => match self.next() {
                    None => return self.issue(start, "is a command without its last delimiter"),
                    Some(b'\n') => {
                        if !lines || self.label_on_line {
                            return self
                                .issue(start, "continues on another line where not every sed follows");
                        }
                        newline = true;
                    }
                    Some(b'0'..=b'9') => references += 1,
                    // `\n`, and the numeric and control escapes of GNU sed.
                    Some(b'n' | b'c' | b'd' | b'o' | b'x') => newline = true,
                    Some(_) => {}
                },
                Some(b'&') if delimiter != b'&' => references += 1,
                Some(byte) if byte == delimiter => return Ok((references, newline)),
                Some(_) => {}
            }
        }
    }

    fn substitute(&mut self, start: usize) -> Result<(), ScriptIssue> {
        let delimiter = self.delimiter()?;
        self.regex(delimiter)?;
        let (references, newline) = self.replacement(delimiter, start, true)?;
        if newline || references > 1 {
            self.adds_lines.get_or_insert(start);
        }
        loop {
            self.blanks();
            let at = self.at;
            match self.peek() {
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => self.at += 1,
                Some(b'w') => return self.issue(at, "writes the result into a file"),
                Some(b'e') => return self.issue(at, "runs the result as a command"),
                Some(_) | None => return self.end_of_command(),
            }
        }
    }

    fn translate(&mut self, start: usize) -> Result<(), ScriptIssue> {
        let delimiter = self.delimiter()?;
        self.replacement(delimiter, start, false)?;
        let (_, newline) = self.replacement(delimiter, start, false)?;
        if newline {
            self.adds_lines.get_or_insert(start);
        }
        self.end_of_command()
    }

    /// The text of `a`, `i` and `c`: on the same line, or on those after `a\`.
    fn text_block(&mut self, start: usize) -> Result<(), ScriptIssue> {
        self.blanks();
        match self.peek() {
            None | Some(b'\n' | b'}' | b';') => return self.issue(start, "has no text"),
            Some(b'\\') => {
                self.at += 1;
                // GNU sed 4.9 and older ones disagree about `a\` followed by blanks alone, and about `a\\`.
                let alone = self.peek() == Some(b'\n');
                self.blanks();
                match self.peek() {
                    Some(b'\n') if alone && !self.label_on_line => self.at += 1,
                    None | Some(b'\n' | b'\\') => {
                        return self.issue(start, "has a text that not every sed reads alike");
                    }
                    Some(_) => {}
                }
            }
            Some(_) => {}
        }
        loop {
            match self.next() {
                None => return Ok(()),
                Some(b'\n') => {
                    self.label_on_line = false;
                    return Ok(());
                }
                Some(b'\\') => match self.next() {
                    None => return self.issue(start, "has a text that is not finished"),
                    Some(b'\n') if self.label_on_line => {
                        return self.issue(start, "continues on another line where not every sed follows");
                    }
                    Some(_) => {}
                },
                Some(_) => {}
            }
        }
    }

    fn label(&mut self) -> &'s [u8] {
        let from = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
        {
            self.at += 1;
        }
        self.text.get(from..self.at).unwrap_or(&[])
    }

    /// Whether every run of the script over one line ends: no cycle of jumps without `n` or `N`, which read a line or
    /// end the program; and `D`, which starts again without reading, only where no line can be added.
    fn ends(&self) -> Result<(), ScriptIssue> {
        if let (true, Some(at)) = (self.deletes_first, self.adds_lines) {
            return Err(ScriptIssue {
                code: Code::Endless,
                ..ScriptIssue::new(at, at + 1, "may give `D` ever more lines, so that it never ends")
            });
        }
        for step in &self.commands {
            if matches!(step.command, b'b' | b't' | b'T') && self.target(step).is_none() {
                return Err(ScriptIssue::new(
                    step.at,
                    step.at + step.label.len(),
                    "jumps to a label that is not there",
                ));
            }
        }
        // Between two reads of input, whether this is the last line does not change.
        for last in [false, true] {
            if let Some(step) = self.cycle(last) {
                return Err(ScriptIssue {
                    code: Code::Endless,
                    ..ScriptIssue::new(
                        step.at,
                        step.at + step.label.len(),
                        "jumps back without reading a line, perhaps for ever",
                    )
                });
            }
        }
        Ok(())
    }

    fn target(&self, step: &Step<'_>) -> Option<usize> {
        if step.label.is_empty() {
            return Some(self.commands.len());
        }
        self.labels.iter().find(|(label, _)| *label == step.label).map(|(_, at)| *at)
    }

    /// Where the script may go on after a command without having read a line.
    fn successors(&self, at: usize, last: bool) -> [Option<usize>; 2] {
        let Some(step) = self.commands.get(at) else {
            return [None, None];
        };
        let (may_run, may_skip) = match step.when {
            When::Always => (true, false),
            When::OnLast => (last, !last),
            When::NotOnLast => (!last, last),
            When::Perhaps => (true, true),
        };
        let next = Some(at + 1);
        let (run, skip) = match step.command {
            b'n' | b'N' | b'd' | b'D' | b'q' | b'Q' => (None, next),
            b'b' => (self.target(step), next),
            b't' | b'T' => return [if may_run { self.target(step) } else { None }, next],
            b'{' => (next, Some(step.beyond)),
            _ => (next, next),
        };
        [run.filter(|_| may_run), skip.filter(|_| may_skip)]
    }

    /// A jump that closes a cycle.
    fn cycle(&self, last: bool) -> Option<Step<'s>> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut marks = vec![NEW; self.commands.len()];
        for start in 0..self.commands.len() {
            if marks.get(start) != Some(&NEW) {
                continue;
            }
            let mut path = vec![(start, 0_usize)];
            while let Some((at, tried)) = path.pop() {
                if let Some(mark) = marks.get_mut(at) {
                    *mark = OPEN;
                }
                let Some(next) = self.successors(at, last).get(tried).copied() else {
                    if let Some(mark) = marks.get_mut(at) {
                        *mark = DONE;
                    }
                    continue;
                };
                path.push((at, tried + 1));
                if let Some(next) = next {
                    match marks.get(next) {
                        Some(&OPEN) => return self.commands.get(at).copied(),
                        Some(&NEW) => path.push((next, 0)),
                        Some(_) | None => {}
                    }
                }
            }
        }
        None
    }
}

/// How a sed tells where a bracket expression ends.
#[derive(Debug, Clone, Copy)]
enum Brackets {
    /// `[.x.]`, `[:x:]`, `[=x=]` inside; a backslash means nothing (`snarf_char_class`).
    Gnu,
    /// The same, but `\]` inside does not end it (`compile_ccl` in FreeBSD and macOS).
    Bsd,
    /// The first `]` that is not the very first character ends it (`index_of_next_unescaped_regexp_delim`).
    Busybox,
}

impl Brackets {
    /// Where the delimiter stands that ends the regular expression; none where a newline or the end comes first, or
    /// where an escaped newline stands in it.
    fn end(self, text: &[u8], delimiter: u8) -> Option<usize> {
        let mut at = 0;
        loop {
            let byte = *text.get(at)?;
            if byte == delimiter {
                return Some(at);
            }
            at = match byte {
                b'\n' => return None,
                b'\\' => match text.get(at + 1)? {
                    b'\n' => return None,
                    _ => at + 2,
                },
                b'[' => self.closing(text, at + 1)? + 1,
                _ => at + 1,
            };
        }
    }

    /// Where the `]` stands that closes the bracket expression whose inside begins at `at`.
    fn closing(self, text: &[u8], mut at: usize) -> Option<usize> {
        if text.get(at) == Some(&b'^') {
            at += 1;
        }
        if text.get(at) == Some(&b']') {
            at += 1;
        }
        match self {
            Self::Gnu => gnu_closing(text, at),
            Self::Bsd => bsd_closing(text, at),
            Self::Busybox => text.get(at..)?.iter().position(|byte| *byte == b']').map(|more| at + more),
        }
    }
}

/// The state machine of GNU sed's `snarf_char_class`.
fn gnu_closing(text: &[u8], mut at: usize) -> Option<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Outside,
        AfterBracket,
        Inside(u8),
        AfterMark(u8),
    }
    let mut state = State::Outside;
    loop {
        let byte = *text.get(at)?;
        state = match (state, byte) {
            (_, b'\n') => return None,
            (State::Outside | State::AfterBracket, b']') => return Some(at),
            (State::Outside | State::AfterBracket, b'[') => State::AfterBracket,
            (State::AfterBracket, b'.' | b':' | b'=') => State::Inside(byte),
            (State::Inside(mark), _) if byte == mark => State::AfterMark(mark),
            (State::AfterMark(_), b']') | (State::Outside | State::AfterBracket, _) => State::Outside,
            (State::AfterMark(mark), b'[') => State::AfterMark(mark),
            (State::Inside(mark) | State::AfterMark(mark), _) => State::Inside(mark),
        };
        at += 1;
    }
}

/// `compile_ccl` of FreeBSD and macOS.
fn bsd_closing(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let byte = *text.get(at)?;
        at = match (byte, text.get(at + 1).copied()) {
            (b']', _) => return Some(at),
            (b'[', Some(mark @ (b'.' | b':' | b'='))) => {
                let closed = text.get(at + 2..)?.windows(2).position(|pair| pair == [mark, b']'])?;
                at + 2 + closed + 2
            }
            (b'\\', Some(b']' | b'\\')) => at + 2,
            _ => at + 1,
        };
    }
}
