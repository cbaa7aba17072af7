extension Unicode.Scalar {
    /// Whether the scalar is a control character: C0, DEL or C1.
    package var isControl: Bool { value < 0x20 || (0x7F...0x9F).contains(value) }
}

extension String {
    /// The text with each control character replaced. File names and links of pages may contain some, which could make a terminal
    /// hide or change its output (CWE-150).
    package var withoutControls: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        var text = UnicodeScalarView()
        for scalar in unicodeScalars { text.append(scalar.isControl ? "\u{FFFD}" : scalar) }
        return String(text)
    }
}
