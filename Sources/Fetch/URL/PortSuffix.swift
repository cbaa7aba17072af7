/// The `:port` at the end of a host in a setting.
enum PortSuffix {
    /// Splits `text` at its port. A colon inside an IPv6 address is not a separator: an IPv6 address needs brackets to have a
    /// port.
    ///
    /// - Returns: The text before the port, and the port if there is one; nil if the text after the colon is not a port.
    static func split(_ text: Substring) -> (rest: Substring, port: Int?)? {
        guard let colon = text.lastIndex(of: ":") else { return (text, nil) }
        let rest = text[..<colon]
        guard rest.hasSuffix("]") || !rest.contains(":") else { return (text, nil) }
        return port(in: text[text.index(after: colon)...]).map { (rest, $0) }
    }

    /// Parses a decimal port from 1 to 65535.
    static func port(in text: Substring) -> Int? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(text), (1...65_535).contains(port) else {
            return nil
        }
        return port
    }
}
