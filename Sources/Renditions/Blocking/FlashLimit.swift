/// What becomes of an animation that flashes more often than ``Flashes/allowed`` (WCAG 2.2, success criterion 2.3.1).
package enum FlashLimit: String, Sendable, CaseIterable {
    /// Animations are not looked at.
    case off
    /// It is converted, logged and counted.
    case warn
    /// It is refused: ``RenditionError/flashing(general:red:)``. Its stills are not.
    case refuse
    /// A still picture is answered in its place.
    case still

    /// Whether nothing moving may be answered before the animation was looked at.
    var withholds: Bool { self == .refuse || self == .still }
}
