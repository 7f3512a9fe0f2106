//! A pseudo terminal for programs that insist on one.
//!
//! The command gets the terminal's end as standard input, output and error; we keep the controlling end and read it
//! like a pipe. Both streams arrive as one, as they would on a screen.
//!
//! The terminal is set up for a reader that is no screen: a line feed stays one byte (no carriage return is added)
//! and nothing is echoed. Programs may change that, as `vim` does.
//!
//! Giving it to a command: make the three [`streams`](Pty::streams) its standard streams, let it lead a session of its
//! own and take its standard input as controlling terminal ([`take_control`]) between fork and exec, then
//! [`read`](Pty::into_reader). Under bubblewrap the first process does so in place of `--new-session`: the terminal
//! that the command then controls is this one, which leads nowhere but to us, so pushing characters into it
//! (`TIOCSTI`) gains nothing, and the system call filter refuses it besides.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use self::linux::{INPUT_ENDS, Pty, Terminal, end_input, take_control};

/// How large a terminal says it is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TerminalSize {
    /// Lines. Default 24.
    pub rows: u16,
    /// Characters per line. Default 80.
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}
