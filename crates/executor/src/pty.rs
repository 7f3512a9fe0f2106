//! A pseudo terminal for programs that insist on one: `open(rows, columns) -> io::Result<Pty>` with the
//! controlling and the terminal end as owned descriptors.
