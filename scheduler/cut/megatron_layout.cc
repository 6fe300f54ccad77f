#include "scheduler/cut/megatron_layout.hpp"

#include <algorithm>
#include <vector>

namespace isthmus::scheduler {

namespace {

char letterOf(const Layer& layer) {
    if (layer.type == "embedding") return 'E';
    if (layer.type == "transformer") return 't';
    if (layer.type == "prediction") return 'm';
    if (layer.type == "head") return 'L';
    return '?';
}

/// "tttt" as "t*4"; pairs are shorter as they are.
std::string shortened(const std::string& letters) {
    std::string text;
    for (std::size_t place = 0; place < letters.size();) {
        const std::size_t end =
            std::min(letters.find_first_not_of(letters[place], place), letters.size());
        const std::size_t times = end - place;
        text += letters[place];
        if (times > 3) {
            text += "*" + std::to_string(times);
        } else {
            text.append(times - 1, letters[place]);
        }
        place = end;
    }
    return text;
}

}  // namespace

Result<std::string> megatronLayout(const Model& model, const StageCut& cut) {
    ISTHMUS_TRY(checkCut(model, cut));
    if (!std::is_sorted(cut.chunkOf.begin(), cut.chunkOf.end())) {
        return Status::unsupported("layout: the chunks do not follow each other");
    }
    std::vector<std::string> chunks(static_cast<std::size_t>(cut.chunks));
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        const char letter = letterOf(model.layers[layer]);
        if (letter == '?') {
            return Status::unsupported("layout: " + model.layers[layer].name + " is of type " +
                                       model.layers[layer].type);
        }
        chunks[static_cast<std::size_t>(cut.chunkOf[layer])] += letter;
    }
    std::string text;
    for (std::size_t chunk = 0; chunk < chunks.size();) {
        std::size_t end = chunk + 1;
        while (end < chunks.size() && chunks[end] == chunks[chunk]) ++end;
        // A bar follows each chunk but the last.
        const std::size_t barred = end - chunk - (end == chunks.size() ? 1 : 0);
        const std::string one = shortened(chunks[chunk]);
        if (barred > 1) {
            text += "(" + one + "|)*" + std::to_string(barred);
        } else if (barred == 1) {
            text += one + "|";
        }
        if (end == chunks.size()) text += one;
        chunk = end;
    }
    return text;
}

}  // namespace isthmus::scheduler
