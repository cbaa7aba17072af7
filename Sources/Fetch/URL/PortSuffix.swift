/// The `:port` that may stand behind a host in a setting.
enum PortSuffix {
    /// Splits `text` at its port. A colon inside an IPv6 address is none: such an address needs brackets to have a port.
    ///
    /// - Returns: The text before the port, and the port, if there is one; nil where what stands there is no port.
    static func split(_ text: Substring) -> (rest: Substring, port: Int?)? {
        guard let colon = text.lastIndex(of: ":") else { return (text, nil) }
        let rest = text[..<colon]
        guard rest.hasSuffix("]") || !rest.contains(":") else { return (text, nil) }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(digits), (1...65535).contains(port) else {
            return nil
        }
        return (rest, port)
    }
}
