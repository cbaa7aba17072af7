internal import Sandbox

/// Whether workers are confined well enough to serve with.
enum ConfinementCheck {
    /// Looks at what holds in the zygote.
    ///
    /// - Parameters:
    ///   - confinement: Nil where the zygote did not come up.
    ///   - isRequired: `sandbox.require`.
    /// - Returns: A sentence for the log where something is missing, or nil.
    /// - Throws: A sentence that says why the server does not start.
    static func check(_ confinement: Confinement?, isRequired: Bool) throws(ConfigurationError) -> String? {
        guard let confinement else { throw ConfigurationError("The worker process does not start: the log above may say why.") }
        if confinement.missing.isEmpty { return nil }
        let names = confinement.missing.joined(separator: " and ")
        if isRequired { throw ConfigurationError("sandbox.require is set, and this kernel does not offer \(names).") }
        return
            "THE SANDBOX IS WEAK: this kernel does not offer \(names), so a GIF that takes over a worker can do more than it should"
    }
}
