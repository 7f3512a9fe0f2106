//! Renders a plan as a bubblewrap command line.
