#pragma once

#include <string>
#include <string_view>

namespace isthmus::scheduler {

/// Text with &, <, > and quotes made harmless.
std::string escaped(std::string_view text);

/// At most two digits behind the point; "." whatever the locale.
std::string numberText(double value);

/// "8.05 GB", "640 B": decimal.
std::string bytesText(double bytes);

/// "17.98 s", "3.20 ms", "12.00 us".
std::string secondsText(double seconds);

/// A colour for the n-th of things that are all different: neighbours lie far apart.
std::string hueOf(std::size_t number, int lightnessPercent = 62);

/// Inline SVG, element by element. Texts are escaped, colours and classes are not.
class Svg {
public:
    Svg(double width, double height);

    /// `hint` shows when the pointer is over it; empty: none.
    void box(double x, double y, double width, double height, const std::string& fill,
             const std::string& hint = "", const char* cssClass = "");
    enum class Anchor { kStart, kMiddle, kEnd };
    void text(double x, double y, std::string_view text, Anchor anchor = Anchor::kStart,
              const char* cssClass = "");
    void line(double x, double y, double toX, double toY, const char* cssClass);

    std::string take();

private:
    std::string out_;
};

}  // namespace isthmus::scheduler
