"""What everything else stands on: state, persistence, the file format, parameter checks, types, names."""
