#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "scheduler/json/field.hpp"
#include "scheduler/placement/validate.hpp"

namespace isthmus::scheduler {
namespace {

std::optional<int> numberOf(const std::string& word) {
    int value = 0;
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (error != std::errc() || stop != end || value < 0 || value > kMostRanks) return std::nullopt;
    return value;
}

/// Puts the seat of one rank where it belongs; says what is wrong with it.
Status put(std::vector<std::optional<RealSeat>>& seats, std::size_t rank, RealSeat seat) {
    if (rank >= static_cast<std::size_t>(kMostRanks)) {
        return Status::configuration("there is no rank " + std::to_string(rank));
    }
    if (rank >= seats.size()) seats.resize(rank + 1);
    if (seats[rank]) {
        return Status::configuration("rank " + std::to_string(rank) + " is there twice");
    }
    seats[rank] = std::move(seat);
    return {};
}

Result<std::vector<RealSeat>> complete(const std::vector<std::optional<RealSeat>>& seats) {
    std::vector<RealSeat> all;
    for (const auto& seat : seats) {
        if (!seat) {
            return Status::configuration("rank " + std::to_string(all.size()) + " is missing");
        }
        all.push_back(*seat);
    }
    if (all.empty()) return Status::configuration("has no ranks");
    return all;
}

RealSeat seatOf(const Field& field) {
    RealSeat seat;
    if (field.isText()) {
        seat.host = field.text();
        return seat;
    }
    field.hasOnly({"rank", "node", "device", "coordinates"});
    seat.host = field["node"].text();
    seat.device = static_cast<int>(field["device"].integer(0, kMostRanks, -1));
    return seat;
}

Result<std::vector<RealSeat>> fromJson(const std::string& text) {
    const Result<nlohmann::json> document = parseJson(text);
    if (!document.ok()) return document.status();
    Field::Reading reading;
    const Field root(*document, reading);
    std::vector<std::optional<RealSeat>> seats;
    if (root.isObject() && !root["ranks"].exists()) {
        for (const std::string& name : root.names()) {
            const std::optional<int> rank = numberOf(name);
            if (!rank) return Status::configuration("\"" + name + "\" is no rank");
            ISTHMUS_TRY(put(seats, static_cast<std::size_t>(*rank), seatOf(root[name])));
        }
    } else {
        for (const Field& each : (root.isObject() ? root["ranks"] : root).elements()) {
            const auto next = static_cast<std::int64_t>(seats.size());
            const auto rank =
                each.isObject() ? each["rank"].integer(0, kMostRanks - 1, next) : next;
            ISTHMUS_TRY(put(seats, static_cast<std::size_t>(rank), seatOf(each)));
        }
    }
    if (!reading.failure.ok()) return reading.failure;
    return complete(seats);
}

Status readLine(const std::vector<std::string>& words,
                std::vector<std::optional<RealSeat>>& seats) {
    RealSeat seat;
    std::size_t rank = seats.size();
    if (words.size() == 1) {
        seat.host = words[0];
    } else if (words.size() <= 3) {
        const std::optional<int> first = numberOf(words[0]);
        if (!first) return Status::configuration("\"" + words[0] + "\" is no rank");
        rank = static_cast<std::size_t>(*first);
        seat.host = words[1];
        if (words.size() == 3) {
            const std::optional<int> device = numberOf(words[2]);
            if (!device) return Status::configuration("\"" + words[2] + "\" is no device");
            seat.device = *device;
        }
    } else {
        return Status::configuration("is none of HOST, RANK HOST, RANK HOST DEVICE");
    }
    return put(seats, rank, std::move(seat));
}

}  // namespace

Result<std::vector<RealSeat>> realSeatsOf(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first != text.npos && (text[first] == '[' || text[first] == '{')) return fromJson(text);
    std::vector<std::optional<RealSeat>> seats;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::vector<std::string> all;
        for (std::string word; words >> word;) all.push_back(word);
        if (all.empty()) continue;
        const Status status = readLine(all, seats);
        if (!status.ok()) return status.within("line " + std::to_string(number));
    }
    return complete(seats);
}

}  // namespace isthmus::scheduler
