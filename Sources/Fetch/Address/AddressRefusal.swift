/// Why an address may not be connected to.
package enum AddressRefusal: Hashable, Sendable {
    /// It is special: loopback, private, link-local and so on. The purpose is for the log.
    case address(purpose: String)
    /// The port is not one of those allowed.
    case port(Int)
    /// It is where this process listens.
    case itself
}
