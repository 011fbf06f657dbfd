"""What scikit-learn and nilearn are told of estimators that take images."""

from dataclasses import dataclass
from typing import Any

from sklearn.utils import InputTags


@dataclass(slots=True)
class ImageInputTags(InputTags):
    """scikit-learn's tags with those that nilearn adds, which go by their names."""

    niimg_like: bool = True
    surf_img: bool = False


class ImageInputMixin:
    """Samples are images, not arrays."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags = ImageInputTags(two_d_array=False, string=True)
        return tags
