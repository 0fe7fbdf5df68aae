extension Unicode.Scalar {
  /// Whether a terminal would act on it: a control character, or a mark that reorders text, which could make a host
  /// look like another.
  package var actsOnTerminals: Bool {
    value < 0x20 || (0x7F...0x9F).contains(value) || (0x202A...0x202E).contains(value)
      || (0x2066...0x2069).contains(value)
  }
}
