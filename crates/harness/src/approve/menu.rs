//! A choice at the terminal: by the arrows, or by typing the word that stands before each line.
//!
//! Typing moves, and Enter chooses, so that someone who types the whole word and Enter, as for any other prompt, gets what
//! was typed; and what was typed before the question was there counts for nothing.

use console::{Key, Term};
use std::io;
use std::time::{Duration, Instant};

/// After a pause of this length, a letter begins another word.
const PAUSE: Duration = Duration::from_secs(2);

/// One line of a choice.
#[derive(Debug, Clone)]
pub(super) struct Line<T> {
    /// What it stands for.
    pub value: T,
    /// What is typed to get there, in lower case.
    pub word: &'static str,
    /// What it does.
    pub text: String,
}

/// Throws away what was typed until now: it was not typed in answer to what comes.
pub(super) fn forget_typed() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Lets the person choose, beginning at the first line; nothing when the choice was left with Escape.
///
/// # Errors
///
/// When the terminal cannot be used any more, or a key ended the program.
pub(super) fn choose<T: Copy>(term: &Term, prompt: &str, lines: &[Line<T>]) -> io::Result<Option<T>> {
    if !term.is_term() {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "there is no terminal"));
    }
    term.write_line(&format!("{prompt} (arrows or letters, then Enter)"))?;
    term.hide_cursor()?;
    let chosen = until_chosen(term, lines);
    let shown = term.show_cursor();
    let chosen = chosen?;
    shown?;
    if let Some(line) = chosen.and_then(|at| lines.get(at)) {
        term.write_line(&format!("> {}", line.text))?;
    }
    Ok(chosen.and_then(|at| lines.get(at)).map(|line| line.value))
}

fn until_chosen<T>(term: &Term, lines: &[Line<T>]) -> io::Result<Option<usize>> {
    let words: Vec<&str> = lines.iter().map(|line| line.word).collect();
    let widest = words.iter().map(|word| word.len()).max().unwrap_or(0);
    let (mut at, mut typed) = (0, Typed::default());
    loop {
        let mut rows = 0;
        for (number, line) in lines.iter().enumerate() {
            let mark = if number == at { '>' } else { ' ' };
            let text = format!("{mark} {:widest$}  {}", line.word, line.text);
            let columns = usize::from(term.size().1).max(1);
            rows += console::measure_text_width(&text).div_ceil(columns).max(1);
            let style =
                if number == at { console::Style::new().for_stderr().bold() } else { console::Style::new() };
            term.write_line(&style.apply_to(text).to_string())?;
        }
        let step = step(&words, at, &mut typed, &term.read_key()?, Instant::now());
        term.clear_last_lines(rows)?;
        match step {
            Step::To(next) => at = next,
            Step::Chosen => return Ok(Some(at)),
            Step::Left => return Ok(None),
        }
    }
}

/// What was typed of a word so far.
#[derive(Debug, Default)]
struct Typed {
    text: String,
    last: Option<Instant>,
}

/// What a key does.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    To(usize),
    Chosen,
    Left,
}

fn step(words: &[&str], at: usize, typed: &mut Typed, key: &Key, now: Instant) -> Step {
    let count = words.len().max(1);
    if let Key::Char(c) = key {
        return Step::To(typed_to(words, typed, *c, now));
    }
    typed.text.clear();
    #[expect(clippy::wildcard_enum_match_arm, reason = "keys that mean nothing here, whichever there are")]
    match key {
        Key::ArrowDown | Key::Tab => Step::To((at + 1) % count),
        Key::ArrowUp | Key::BackTab => Step::To((at + count - 1) % count),
        Key::Home => Step::To(0),
        Key::End => Step::To(count - 1),
        Key::Enter => Step::Chosen,
        Key::Escape => Step::Left,
        _ => Step::To(at),
    }
}

/// The line whose word begins with what was typed. Where none does, the last letter begins a new word; what is no word's
/// beginning, and what goes on after a whole word, leads back to the first line, which does least.
fn typed_to(words: &[&str], typed: &mut Typed, c: char, now: Instant) -> usize {
    if typed.last.replace(now).is_some_and(|last| now.duration_since(last) > PAUSE) {
        typed.text.clear();
    }
    typed.text.extend(c.to_lowercase());
    let find = |text: &str| words.iter().position(|word| word.starts_with(text));
    if let Some(at) = find(&typed.text) {
        return at;
    }
    if words.iter().any(|word| typed.text.starts_with(word)) {
        return 0;
    }
    typed.text = c.to_lowercase().collect();
    find(&typed.text).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 6] = ["no", "yes", "session", "always", "edit", "message"];

    fn after(keys: &str) -> usize {
        let (mut at, mut typed, now) = (0, Typed::default(), Instant::now());
        for key in keys.chars() {
            let key = match key {
                '↓' => Key::ArrowDown,
                '↑' => Key::ArrowUp,
                c => Key::Char(c),
            };
            match step(&WORDS, at, &mut typed, &key, now) {
                Step::To(next) => at = next,
                step @ (Step::Chosen | Step::Left) => panic!("{keys}: {step:?}"),
            }
        }
        at
    }

    // contract: P7
    #[test]
    fn typed_words_move_to_their_line_and_to_no_other() {
        for (keys, at) in [
            ("", 0),
            ("y", 1),
            ("yes", 1),
            ("YES", 1),
            ("ye", 1),
            ("yess", 0),
            ("yes please", 0),
            ("yes no", 0),
            ("n", 0),
            ("no", 0),
            ("not ever", 0),
            ("a", 3),
            ("always", 3),
            ("s", 2),
            ("e", 4),
            ("m", 5),
            ("yn", 0),
            ("na", 3),
            ("x", 0),
            ("yx", 0),
            ("↓↓", 2),
            ("↑", 5),
            ("y↓", 2),
            ("y↓e", 4),
            ("↑↓", 0),
        ] {
            assert_eq!(after(keys), at, "{keys}");
        }
    }

    #[test]
    fn a_letter_after_a_pause_begins_a_word_and_only_enter_chooses() {
        let (mut typed, now) = (Typed::default(), Instant::now());
        assert_eq!(step(&WORDS, 0, &mut typed, &Key::Char('y'), now), Step::To(1));
        assert_eq!(step(&WORDS, 1, &mut typed, &Key::Char('e'), now + PAUSE * 2), Step::To(4));
        assert_eq!(step(&WORDS, 4, &mut typed, &Key::Char(' '), now + PAUSE * 2), Step::To(0));
        assert_eq!(step(&WORDS, 4, &mut typed, &Key::Enter, now), Step::Chosen);
        assert_eq!(step(&WORDS, 4, &mut typed, &Key::Escape, now), Step::Left);
        assert_eq!(step(&WORDS, 4, &mut typed, &Key::Unknown, now), Step::To(4));
    }
}
