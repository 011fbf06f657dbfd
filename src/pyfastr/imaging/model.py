"""What regression and classification of images share."""

import inspect
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pyfastr.estimators.outlets import SavedMixin
from pyfastr.estimators.watching import showing
from pyfastr.imaging.backend import nilearn
from pyfastr.imaging.confounds import read_confounds
from pyfastr.imaging.grid import Grid, resample
from pyfastr.imaging.tags import ImageInputMixin
from pyfastr.imaging.transformer import NiftiTransformer
from pyfastr.imaging.volumes import find_volumes

Array = NDArray[Any]


class NiftiModel(SavedMixin, ImageInputMixin, BaseEstimator):
    """A transformer and an estimator: parameters, the fit, and what is read off the two."""

    _default: ClassVar[type[Any]]

    def __init__(
        self,
        estimator: Any = None,
        *,
        mask_img: Any = None,
        mask_strategy: str = "background",
        target_affine: Any = None,
        target_shape: Any = None,
        smoothing_fwhm: Any = None,
        dtype: Any = "auto",
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.mask_img = mask_img
        self.mask_strategy = mask_strategy
        self.target_affine = target_affine
        self.target_shape = target_shape
        self.smoothing_fwhm = smoothing_fwhm
        self.dtype = dtype
        self.verbose = verbose

    def generate_report(
        self,
        imgs: Any = None,
        y: Any = None,
        *,
        confounds: Any = None,
        background_img: Any = "mean",
        title: str | None = None,
    ) -> Any:
        """Return an HTML report of the fitted model.

        Parameters
        ----------
        imgs : path, pattern, image, or list of paths or 3-D images, optional
            Images to show predictions of, with their `y` and `confounds`; best those that the fit
            has not seen.
        y : array-like of shape (n_samples,), optional
        confounds : array-like of shape (n_samples, n_confounds), data frame or path, optional
        background_img : "mean", "MNI152", image, path or None, default="mean"
            What lies under the coefficient: the mean of the training images, nilearn's template
            for images in MNI space, or any image.
        title : str, optional

        Returns
        -------
        Report
            With `save_as_html`, `open_in_browser` and a view in notebooks.
        """
        check_is_fitted(self)
        # Reports need packages of their own, which a fit can do without.
        from pyfastr.display.report import model_report
        from pyfastr.imaging.description import fitting_code, images_section

        names = f"{type(self).__name__} ({type(self.estimator_).__name__})"
        return model_report(
            self.estimator_,
            X=None if imgs is None else self.transformer_.transform(imgs),
            y=y,
            covariates=read_confounds(confounds),
            title=f"{names}, {self.n_elements_:,} voxels" if title is None else title,
            background=self._background(background_img),
            mask=np.asarray(self.mask_img_.dataobj)[self.transformer_.slices_] != 0,
            extra_sections=[images_section(self.transformer_)],
            code=fitting_code(self),
        )

    @property
    def mask_img_(self) -> Any:
        return self.transformer_.mask_img_

    @property
    def n_elements_(self) -> int:
        return self.transformer_.n_elements_

    @property
    def coef_img_(self) -> Any:
        return self.transformer_.inverse_transform(self.estimator_.coef_)

    @property
    def coef_(self) -> Array:
        return self.estimator_.coef_

    @property
    def factors_(self) -> list[Array]:
        return self.estimator_.factors_

    @property
    def scales_(self) -> Array:
        return self.estimator_.scales_

    @property
    def intercept_(self) -> float:
        return self.estimator_.intercept_

    @property
    def mode_names_in_(self) -> tuple[str, ...]:
        return self.transformer_.mode_names_

    @property
    def mode_coords_in_(self) -> list[Array]:
        return self.transformer_.mode_coords_

    def _fit(self, imgs: Any, y: Any, **params: Any) -> None:
        """Read the images, fit a fresh estimator to them, and only then set attributes."""
        estimator = self._fresh_estimator()
        params["covariates"] = read_confounds(params["covariates"])
        given = _check_fit_params(estimator, params)
        volumes = find_volumes(imgs)
        _check_response(self, volumes, y)
        transformer = NiftiTransformer(
            **{name: getattr(self, name) for name in NiftiTransformer().get_params()}
        )
        with showing(self.verbose):
            X = transformer.fit_transform(volumes)
            estimator.fit(X, y, **given)
        estimator.mode_names_in_ = transformer.mode_names_
        estimator.mode_coords_in_ = transformer.mode_coords_
        mean = transformer.inverse_transform(X.mean(axis=0, dtype=np.float64).astype(np.float32))
        self.mean_img_, self.transformer_, self.estimator_ = mean, transformer, estimator

    def _fresh_estimator(self) -> Any:
        """Return a clone of the estimator to fit, or the default."""
        estimator = self._default() if self.estimator is None else clone(self.estimator)
        kind = "classifier" if is_classifier(self) else "regressor"
        fitting = is_classifier(estimator) if kind == "classifier" else is_regressor(estimator)
        if not fitting or isinstance(estimator, Pipeline):
            raise ValueError(
                f"estimator is {estimator!r}; expected a {kind} of pyfastr, such as "
                f"{self._default.__name__}(). To add other steps, begin a Pipeline with "
                "NiftiTransformer."
            )
        return estimator

    def _ask(self, method: str, imgs: Any, confounds: Any) -> Any:
        """Call a method of the estimator on images."""
        check_is_fitted(self)
        answer = getattr(self.estimator_, method)
        covariates = read_confounds(confounds)
        X = self.transformer_.transform(imgs)
        return answer(X) if covariates is None else answer(X, covariates=covariates)

    def _background(self, background_img: Any) -> Array | None:
        """Return an image on the box of the coefficient."""
        if background_img is None:
            return None
        if isinstance(background_img, str) and background_img == "mean":
            background_img = self.mean_img_
        elif isinstance(background_img, str) and background_img == "MNI152":
            background_img = nilearn("datasets").load_mni152_template(resolution=2)
        volumes = find_volumes(background_img, "background_img")
        if len(volumes) != 1:
            raise ValueError(f"background_img holds {len(volumes)} volumes; expected one.")
        values, grid = np.nan_to_num(volumes[0].read()), Grid.of(self.mask_img_)
        if not volumes[0].grid.same_as(grid):
            values = resample(values, volumes[0].grid, grid, "continuous")
        return values[self.transformer_.slices_]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _check_fit_params(estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return what was given; refuse what the estimator's `fit` does not take."""
    given = {name: value for name, value in params.items() if value is not None}
    taken = inspect.signature(estimator.fit).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values()):
        return given
    for name in given:
        if name not in taken:
            argument = "confounds" if name == "covariates" else name
            raise ValueError(
                f"{argument} is given, but {type(estimator).__name__} takes none; expected "
                f"{argument}=None, or another estimator. Groups are for those that make folds, as "
                "FasTRRegressorCV and FasTRClassifierCV do."
            )
    return given


def _check_response(model: Any, volumes: list[Any], y: Any) -> None:
    """Refuse a missing response or one of another length before any image is read."""
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )
    check_consistent_length(volumes, y)
